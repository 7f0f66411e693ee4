//! Resizable variables: their declared shapes have unknown axes, and calls may change their sizes up to a capacity.
use super::entries::MAX_ELEMENTS;
use super::{Request, tables::initial_capacity};
use crate::diag::{Code, Error, Result};
use crate::graph::{PartialShape, Program, TfType, Variable, VariableRole};
use crate::tensor::{DType, Tensor, element_count};

/// Whether the program has a variable with a value whose declared shape has unknown axes.
pub fn has_resizable_variables(program: &Program) -> bool {
    program.variables.iter().any(has_unknown_axes)
}

fn has_unknown_axes(variable: &Variable) -> bool {
    let axes = variable.open_axes();
    let rank = variable.shape.0.as_ref().map_or(0, Vec::len);
    let fits = variable.value.as_ref().is_some_and(|value| value.dims.len() == rank);
    variable.role == VariableRole::Model && !variable.by_reference && fits && !axes.is_empty()
}

/// Extends the resizable variables in `state` to their capacities along unknown axes, and adds a variable behind each that holds the sizes of
/// these axes. The names of the added variables are appended to `state`.
///
/// # Errors
/// `TooLarge`.
pub fn allocate_capacity(program: &mut Program, request: &Request, state: &mut Vec<String>) -> Result<()> {
    let mut all = Vec::with_capacity(program.variables.len());
    let mut names: Vec<String> = program.variables.iter().map(|v| v.name.clone()).collect();
    for mut variable in std::mem::take(&mut program.variables) {
        let grows = has_unknown_axes(&variable) && state.contains(&variable.name);
        let Some(value) = variable.value.take_if(|_| grows) else {
            all.push(variable);
            continue;
        };
        let axes = variable.open_axes();
        let mut dims = value.dims.clone();
        for &axis in &axes {
            let rooms = variable.handles.iter().map(|handle| initial_capacity(request, handle, value.dims[axis]));
            dims[axis] = rooms.min().unwrap_or(value.dims[axis]);
        }
        let elements = element_count(&dims).filter(|&n| n <= MAX_ELEMENTS);
        let elements = elements.and_then(|n| usize::try_from(n).ok()?.checked_mul(value.dtype.bytes()));
        let bytes = elements.ok_or_else(|| {
            Error::user(Code::TooLarge, format!("the variable `{}` has room for {dims:?} elements", variable.name))
        })?;
        let sizes: Vec<i64> = axes.iter().map(|&axis| value.dims[axis] as i64).collect();
        let mut name = format!("{}/sizes", variable.name);
        while names.contains(&name) {
            name.push('_');
        }
        names.push(name.clone());
        state.push(name.clone());
        variable.value = Some(pad_with_zeros(&value, dims, bytes));
        variable.role = VariableRole::Growing;
        let sizes = Variable {
            name,
            called: None,
            dtype: TfType::Data(DType::S64),
            shape: PartialShape(Some(vec![Some(axes.len() as u64)])),
            value: Some(Tensor::of(&[axes.len() as u64], &sizes)),
            role: VariableRole::Sizes,
            ..variable.clone()
        };
        all.extend([variable, sizes]);
    }
    program.variables = all;
    Ok(())
}

/// Pads `value` with zeros at the end of each axis to the dimensions `dims`, which take `bytes` bytes.
fn pad_with_zeros(value: &Tensor, dims: Vec<u64>, bytes: usize) -> Tensor {
    let width = value.dtype.bytes();
    let mut out = vec![0; bytes];
    let (from, to) = (strides(&value.dims), strides(&dims));
    for i in 0..value.len() {
        let at: u64 = (0..dims.len()).map(|axis| i as u64 / from[axis] % value.dims[axis] * to[axis]).sum();
        let at = at as usize * width;
        out[at..at + width].copy_from_slice(&value.bytes[i * width..(i + 1) * width]);
    }
    Tensor::new(value.dtype, dims, out)
}

/// Strides of a dense row-major array, in elements.
fn strides(dims: &[u64]) -> Vec<u64> {
    (0..dims.len()).map(|axis| dims[axis + 1..].iter().product()).collect()
}
