//! Names and types of functions as callers see them.
use crate::codegen::c::text::IrType;
use crate::codegen::c::types::c_scalar_type;
use std::collections::HashMap;

/// The C names of a module's functions and constants, with the functions' types.
#[derive(Default)]
pub struct SymbolNames {
    /// The C prototype of each function, by its LLVM name.
    pub functions: HashMap<String, CPrototype>,
    /// The C name of each constant, by its LLVM name.
    pub globals: HashMap<String, String>,
}

/// The C prototype of a function: its name and types.
#[derive(Clone, Debug)]
pub struct CPrototype {
    pub name: String,
    pub result: IrType,
    pub parameters: Vec<IrType>,
    /// Whether each parameter is a function pointer.
    pub is_called: Vec<bool>,
}

impl CPrototype {
    /// The C text of the prototype, without semicolon or body; `names` are those of the parameters.
    pub fn text(&self, names: &[String]) -> String {
        let parameter = |i: usize| {
            let own = names.get(i).map_or(String::new(), |name| format!(" {name}"));
            format!("{}{own}", parameter_type(&self.parameters[i], self.is_called[i]))
        };
        let list: Vec<String> = (0..self.parameters.len()).map(parameter).collect();
        let list = if list.is_empty() { "void".to_string() } else { list.join(", ") };
        format!("{} {}({list})", result_type(&self.result), self.name)
    }
}

/// The C type of a parameter, as the header declares it: sizes are signed.
pub fn parameter_type(ty: &IrType, is_called: bool) -> String {
    match ty {
        IrType::Pointer if is_called => "tf_task".to_string(),
        IrType::Pointer => "void *".to_string(),
        IrType::Int(64) => "int64_t".to_string(),
        IrType::Int(32) => "int".to_string(),
        ty => c_scalar_type(ty),
    }
}

/// The C return type of a function with this LLVM result type.
pub fn result_type(ty: &IrType) -> String {
    match ty {
        IrType::Void => "void".to_string(),
        IrType::Pointer => "void *".to_string(),
        IrType::Int(32) => "int".to_string(),
        ty => c_scalar_type(ty),
    }
}
