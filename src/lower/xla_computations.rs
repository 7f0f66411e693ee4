//! Lowering of `Xla*` ops whose scalar computation is a library function: sorts, reductions and scatters.
use super::state::ThreadedVariables;
use super::walker::{ValueSlot, Walker};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, FuncRef, Node};
use crate::hlo::proto::dimension_numbers;
use crate::hlo::symbolic::WindowDim;
use crate::hlo::symbolic::{CompId, Dim, InstId, Op, Shape};
use crate::interp;
use crate::ops::Value;
use crate::ops::xla::{int_list_attr, window};
use crate::tensor::DType;

/// Operands of a sort or reduction: arrays of one shape.
struct SameShapeArrays {
    ids: Vec<InstId>,
    types: Vec<DType>,
    dims: Vec<Dim>,
}

impl Walker<'_> {
    /// The arrays in `args`. Errors: `ShapeMismatch` if there are none or their shapes differ.
    fn same_shape_arrays(&self, args: &[Value]) -> Result<SameShapeArrays> {
        let mut ids = Vec::with_capacity(args.len());
        for arg in args {
            let Value::Array(id) = arg else {
                return Err(Error::user(Code::UnsupportedType, "an input is not an array"));
            };
            ids.push(*id);
        }
        let Some(&first) = ids.first() else { return Err(shape_mismatch("no array to work on")) };
        let dims = self.b.dims(first).to_vec();
        if ids.iter().any(|&id| self.b.dims(id) != dims) {
            return Err(shape_mismatch("the arrays have different shapes"));
        }
        let types = ids.iter().map(|&id| self.b.dtype(id)).collect();
        Ok(SameShapeArrays { ids, types, dims })
    }

    /// Computation of the library function `f` with scalar parameters of the types `params` and scalar results of the types `results`. `None`
    /// where the function could not be lowered and a diagnostic was reported.
    fn scalar_function(&mut self, f: &FuncRef, params: &[DType], results: &[DType]) -> Result<Option<CompId>> {
        self.b.begin_computation(&f.name);
        let args = params.iter().map(|&t| Value::Array(self.b.parameter(Shape::array(t, [])))).collect();
        let Some(out) = self.lower_call_into_computation(f, args, &ThreadedVariables::default())? else {
            self.b.discard_computation();
            return Ok(None);
        };
        let mut roots = Vec::with_capacity(out.len());
        for value in &out {
            match value {
                Value::Array(id) if self.b.rank(*id) == 0 => roots.push(*id),
                _ => return Err(Error::user(Code::BadFunction, format!("`{}` must return scalars", f.name))),
            }
        }
        let found: Vec<DType> = roots.iter().map(|&id| self.b.dtype(id)).collect();
        if found != results {
            let message = format!("`{}` returns {found:?}, where {results:?} is needed", f.name);
            return Err(Error::user(Code::BadFunction, message));
        }
        let root = if let [one] = roots[..] { one } else { self.b.tuple(&roots) };
        Ok(Some(self.b.end_computation(root)))
    }

    /// The `n` results of an instruction, which returns an array if `n` is 1, else a tuple.
    fn tuple_slots(&mut self, id: InstId, n: usize) -> Vec<ValueSlot> {
        if n == 1 {
            return vec![Some(Value::Array(id))];
        }
        (0..n).map(|i| Some(Value::Array(self.b.get_tuple_element(id, i)))).collect()
    }

    /// Lowers `XlaVariadicSort`: arrays sorted together, with a comparator that takes two elements of each array, next to one another.
    pub(super) fn variadic_sort(&mut self, node: &Node, args: Vec<Value>) -> Result<Vec<ValueSlot>> {
        let Some((Value::Array(dimension), arrays)) = args.split_last() else {
            return Err(shape_mismatch("the dimension is missing"));
        };
        let known = interp::constant_value(&self.b, *dimension).and_then(|t| t.get_i64(0));
        let Some(dimension) = known else {
            return Err(Error::user(Code::NotConstant, "the dimension must be known at compile time"));
        };
        let arrays = self.same_shape_arrays(arrays)?;
        let rank = arrays.dims.len() as i64;
        let dim = if dimension < 0 { dimension + rank } else { dimension };
        if dim < 0 || dim >= rank {
            return Err(shape_mismatch(&format!("dimension {dimension} of arrays {:?}", arrays.dims)));
        }
        let f = super::functions::required_function_attr(node, "comparator")?;
        let params: Vec<DType> = arrays.types.iter().flat_map(|&t| [t, t]).collect();
        let Some(comp) = self.scalar_function(f, &params, &[DType::Pred])? else {
            return Ok(vec![None; arrays.ids.len()]);
        };
        let is_stable = node.bool("is_stable").unwrap_or(false);
        let sorted = self.b.add_inst(Op::Sort { dim: dim as usize, is_stable, comp }, &arrays.ids);
        Ok(self.tuple_slots(sorted, arrays.ids.len()))
    }

    /// Lowers `XlaReduce` and `XlaVariadicReduce`: the first half of the inputs are arrays, the second half their initial scalars.
    pub(super) fn variadic_reduce(&mut self, node: &Node, args: Vec<Value>) -> Result<Vec<ValueSlot>> {
        let n = args.len() / 2;
        let (arrays, inits) = (self.same_shape_arrays(&args[..n])?, self.same_shape_arrays(&args[n..])?);
        if !args.len().is_multiple_of(2) || !inits.dims.is_empty() || inits.types != arrays.types {
            return Err(shape_mismatch("a reduction needs arrays and as many scalars of their types"));
        }
        let rank = arrays.dims.len();
        let mut dims = Vec::new();
        for &axis in int_list_attr(node, "dimensions_to_reduce")? {
            let found = usize::try_from(axis).ok().filter(|&a| a < rank && !dims.contains(&a));
            dims.push(found.ok_or_else(|| shape_mismatch(&format!("dimension {axis} of arrays {:?}", arrays.dims)))?);
        }
        dims.sort_unstable();
        let f = super::functions::required_function_attr(node, "reducer")?;
        let params: Vec<DType> = arrays.types.iter().chain(&arrays.types).copied().collect();
        let Some(comp) = self.scalar_function(f, &params, &arrays.types)? else { return Ok(vec![None; n]) };
        let operands: Vec<InstId> = arrays.ids.iter().chain(&inits.ids).copied().collect();
        let folded = self.b.add_inst(Op::Reduce { dims, comp }, &operands);
        Ok(self.tuple_slots(folded, n))
    }
}

impl Walker<'_> {
    /// Lowers `XlaReduceWindow`: each window of an array is reduced by a library function.
    pub(super) fn reduce_window(&mut self, node: &Node, args: Vec<Value>) -> Result<Vec<ValueSlot>> {
        let [Value::Array(x), Value::Array(init), shape @ ..] = &args[..] else {
            return Err(shape_mismatch("an array and a scalar to start with are needed"));
        };
        let rank = self.b.rank(*x);
        let mut lists = Vec::with_capacity(shape.len());
        for value in shape {
            let known = self.constant_value(value).and_then(|t| t.to_i64s());
            lists
                .push(known.ok_or_else(|| Error::user(Code::NotConstant, "the window must be known at compile time"))?);
        }
        let [sizes, strides, base, dilations, padding] = &lists[..] else {
            return Err(shape_mismatch("the window is not whole"));
        };
        let window = window_dims(rank, [sizes, strides, base, dilations], padding)
            .ok_or_else(|| shape_mismatch(&format!("a window of {sizes:?} does not fit {rank} dimensions")))?;
        let dtype = self.b.dtype(*x);
        if self.b.rank(*init) != 0 || self.b.dtype(*init) != dtype {
            return Err(shape_mismatch("the start must be a scalar of the array's type"));
        }
        let f = super::functions::required_function_attr(node, "computation")?;
        let Some(comp) = self.scalar_function(f, &[dtype, dtype], &[dtype])? else { return Ok(vec![None]) };
        let y = self.b.add_inst(Op::ReduceWindow { window, comp }, &[*x, *init]);
        Ok(vec![Some(Value::Array(y))])
    }
}

impl Walker<'_> {
    /// Lowers `XlaScatter`: a library function combines updates with the array elements at given indices.
    pub(super) fn scatter(&mut self, node: &Node, args: &[Value]) -> Result<Vec<ValueSlot>> {
        let [Value::Array(x), Value::Array(indices), Value::Array(updates)] = *args else {
            return Err(shape_mismatch("an array, indices and updates are needed"));
        };
        let Some(Attr::Str(bytes)) = node.attr("dimension_numbers") else {
            return Err(Error::user(Code::BadAttr, "attribute `dimension_numbers` is missing"));
        };
        let mut dims = dimension_numbers::scatter(bytes)?;
        dims.indices_are_sorted = node.bool("indices_are_sorted").unwrap_or(false);
        let dtype = self.b.dtype(x);
        let f = super::functions::required_function_attr(node, "update_computation")?;
        let Some(comp) = self.scalar_function(f, &[dtype, dtype], &[dtype])? else { return Ok(vec![None]) };
        let y = self.b.add_inst(Op::Scatter { dims: Box::new(dims), comp }, &[x, indices, updates]);
        Ok(vec![Some(Value::Array(y))])
    }

    /// Lowers `XlaSelectAndScatter`: each element of the source is added to the element of its window that a library function selects.
    pub(super) fn select_and_scatter(&mut self, node: &Node, args: &[Value]) -> Result<Vec<ValueSlot>> {
        let [Value::Array(x), sizes, strides, padding, Value::Array(source), Value::Array(init)] = args else {
            return Err(shape_mismatch("an array, a window, a source and a scalar to start with are needed"));
        };
        let (rank, dtype) = (self.b.rank(*x), self.b.dtype(*x));
        let list = |value: &Value| {
            let known = self.constant_value(value).and_then(|t| t.to_i64s());
            known.ok_or_else(|| Error::user(Code::NotConstant, "the window must be known at compile time"))
        };
        let (sizes, strides, padding) = (list(sizes)?, list(strides)?, list(padding)?);
        let ones = vec![1; rank];
        let window = window_dims(rank, [&sizes, &strides, &ones, &ones], &padding)
            .ok_or_else(|| shape_mismatch(&format!("a window of {sizes:?} does not fit {rank} dimensions")))?;
        if self.b.rank(*init) != 0 || [*source, *init].iter().any(|&id| self.b.dtype(id) != dtype) {
            return Err(shape_mismatch("the source and the scalar to start with must be of the array's type"));
        }
        let (keeps, adds) = (
            super::functions::required_function_attr(node, "select")?,
            super::functions::required_function_attr(node, "scatter")?,
        );
        let select = self.scalar_function(keeps, &[dtype, dtype], &[DType::Pred])?;
        let scatter = self.scalar_function(adds, &[dtype, dtype], &[dtype])?;
        let (Some(select), Some(scatter)) = (select, scatter) else { return Ok(vec![None]) };
        let y = self.b.add_inst(Op::SelectAndScatter { window, select, scatter }, &[*x, *source, *init]);
        Ok(vec![Some(Value::Array(y))])
    }
}

/// Window of each dimension, from lists of sizes, strides, base dilations and window dilations, and pairs of paddings. `None` where a list
/// has another length than `rank`, or a value is out of range.
fn window_dims(rank: usize, parts: [&Vec<i64>; 4], padding: &[i64]) -> Option<Vec<WindowDim>> {
    let [sizes, strides, base, dilations] = parts.map(|list| window::positive_dims(list, rank));
    window::window_dims([&sizes?, &strides?, &base?, &dilations?], padding)
}

fn shape_mismatch(message: &str) -> Error {
    Diagnostic::new(Code::ShapeMismatch, message).into()
}
