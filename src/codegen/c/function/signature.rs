//! Names and types of functions as callers see them.
use crate::codegen::c::text::Type;
use crate::codegen::c::types::scalar;
use std::collections::HashMap;

/// The names and types that functions of a file see of one another.
#[derive(Default)]
pub struct Names {
    /// The C name, the result and the parameters of each function.
    pub functions: HashMap<String, CFunction>,
    /// The C name of each constant.
    pub globals: HashMap<String, String>,
}

/// The name and types of a function as its callers see them.
#[derive(Clone, Debug)]
pub struct CFunction {
    pub name: String,
    pub result: Type,
    pub parameters: Vec<Type>,
    /// Whether each parameter is called.
    pub is_called: Vec<bool>,
}

impl CFunction {
    /// The C declaration without what follows it; `names` are those of the parameters.
    pub fn text(&self, names: &[String]) -> String {
        let parameter = |i: usize| {
            let own = names.get(i).map_or(String::new(), |name| format!(" {name}"));
            format!("{}{own}", parameter(&self.parameters[i], self.is_called[i]))
        };
        let list: Vec<String> = (0..self.parameters.len()).map(parameter).collect();
        let list = if list.is_empty() { "void".to_string() } else { list.join(", ") };
        format!("{} {}({list})", result(&self.result), self.name)
    }
}

/// The C type of a parameter, as headers have it: sizes are signed there.
pub fn parameter(ty: &Type, is_called: bool) -> String {
    match ty {
        Type::Pointer if is_called => "tf_task".to_string(),
        Type::Pointer => "void *".to_string(),
        Type::Int(64) => "int64_t".to_string(),
        Type::Int(32) => "int".to_string(),
        ty => scalar(ty),
    }
}

/// The C type of a result.
pub fn result(ty: &Type) -> String {
    match ty {
        Type::Void => "void".to_string(),
        Type::Pointer => "void *".to_string(),
        Type::Int(32) => "int".to_string(),
        ty => scalar(ty),
    }
}
