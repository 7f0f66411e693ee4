//! Calls of a program with the handlers that they call.
use super::attributes::Dictionary;
use super::context::{ExecutionContext, Instance};
use super::structs::{Buffer, CallFrame, EXECUTE, Handler, INSTANTIATE, TOKEN, Values};
use super::{api, python, registry, structs};
use crate::element;
use crate::failure::{Code, Failure};
use crate::program::Array;
use serde::{Deserialize, Serialize};
use std::ffi::c_int;
use tfaot::DType;
use tfaot::hlo::Shape;
use tfaot::hlo::stablehlo::read_call_attributes;
use tfaot::optimize::HostCall;
use tfaot::tensor::TensorInfo;

/// One call of a program, as its facts keep it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFacts {
    /// The name of the function.
    target: String,
    /// Its attributes, as a dictionary of MLIR; empty for none.
    attributes: String,
    /// Types of the operands and of the results; none for tokens.
    args: Vec<Option<Array>>,
    results: Vec<Option<Array>>,
    /// Results that are written over operands.
    aliases: Vec<(usize, usize)>,
    /// Whether the scalar that orders effects stands before the arrays that are read, and before those that are written.
    has_effect: bool,
}

impl CallFacts {
    /// The facts of a call.
    ///
    /// # Errors
    /// `Code::Unimplemented` for calls of other interfaces than XLA's typed one; `Code::InvalidArgument` for attributes that are no text.
    pub fn new(call: &HostCall) -> Result<CallFacts, Failure> {
        let HostCall { target, api_version, config, .. } = call;
        if *api_version != 4 {
            let told = format!(
                "the call of `{target}` is not of XLA's typed FFI (API version 4), but of version {api_version}"
            );
            return Err(Failure::new(Code::Unimplemented, told));
        }
        let attributes = String::from_utf8(config.clone());
        let attributes = attributes.map_err(|_| Failure::new(Code::InvalidArgument, "attributes are no text"))?;
        let arrays = |shapes: &[Shape]| shapes.iter().map(array).collect::<Result<Vec<_>, _>>();
        Ok(CallFacts {
            target: target.clone(),
            attributes,
            args: arrays(&call.args)?,
            results: arrays(&call.results)?,
            aliases: call.aliases.clone(),
            has_effect: call.has_effect,
        })
    }
}

/// The type of an operand or a result; none for a token.
fn array(shape: &Shape) -> Result<Option<Array>, Failure> {
    let Some(array) = shape.as_array() else { return Ok(None) };
    let (dtype, dims) = (array.dtype, array.dims.clone());
    Array::of(&TensorInfo { name: String::new(), called: None, field: String::new(), dtype, dims }).map(Some)
}

/// `XLA_FFI_DataType`.
const NUMBERS: [(DType, c_int); 28] = [
    (DType::Pred, 1),
    (DType::S8, 2),
    (DType::S16, 3),
    (DType::S32, 4),
    (DType::S64, 5),
    (DType::U8, 6),
    (DType::U16, 7),
    (DType::U32, 8),
    (DType::U64, 9),
    (DType::F16, 10),
    (DType::F32, 11),
    (DType::F64, 12),
    (DType::C64, 15),
    (DType::BF16, 16),
    (DType::C128, 18),
    (DType::F8E5M2, 19),
    (DType::F8E4M3FN, 20),
    (DType::S4, 21),
    (DType::U4, 22),
    (DType::F8E4M3B11FNUZ, 23),
    (DType::F8E5M2FNUZ, 24),
    (DType::F8E4M3FNUZ, 25),
    (DType::S2, 26),
    (DType::U2, 27),
    (DType::F8E4M3, 28),
    (DType::F8E3M4, 29),
    (DType::F4E2M1FN, 32),
    (DType::F8E8M0FNU, 33),
];

/// XLA's number of a type.
///
/// # Errors
/// `Code::Unimplemented` for types without one.
pub fn data_type(dtype: DType) -> Result<c_int, Failure> {
    let found = NUMBERS.iter().find(|(own, _)| *own == dtype).map(|(_, number)| *number);
    found.ok_or_else(|| Failure::new(Code::Unimplemented, format!("handlers can't get numbers of {dtype}")))
}

/// An operand or a result as handlers see it; null memory for tokens.
struct Value {
    dtype: c_int,
    dims: Vec<i64>,
    /// Number of bytes; none for tokens, which have no memory.
    bytes: Option<usize>,
}

impl Value {
    fn new(array: Option<&Array>) -> Result<Value, Failure> {
        let Some(array) = array else { return Ok(Value { dtype: TOKEN, dims: Vec::new(), bytes: None }) };
        let dtype = array.dtype()?;
        let bytes = Some(element::bytes(dtype, &array.dims)?);
        Ok(Value { dtype: data_type(dtype)?, dims: array.dims.clone(), bytes })
    }

    fn buffer(&self, data: *mut u8) -> Buffer {
        Buffer {
            struct_size: size_of::<Buffer>(),
            extension_start: std::ptr::null_mut(),
            dtype: self.dtype,
            data: data.cast(),
            rank: self.dims.len() as i64,
            dims: self.dims.as_ptr(),
        }
    }
}

/// The function of a call site.
enum Function {
    Handler(Handler),
    Python,
}

/// A call of a loaded program.
pub struct CallSite {
    function: Function,
    attributes: Dictionary,
    args: Vec<Value>,
    results: Vec<Value>,
    aliases: Vec<(usize, usize)>,
    has_effect: bool,
    instance: Instance,
}

impl CallSite {
    /// Finds the function of a call, and lets it make what it keeps.
    ///
    /// # Errors
    /// `Code::Unimplemented` where no handler has the name; errors of handlers.
    pub fn new(facts: &CallFacts) -> Result<CallSite, Failure> {
        let name = &facts.target;
        let values = |all: &[Option<Array>]| all.iter().map(|a| Value::new(a.as_ref())).collect::<Result<Vec<_>, _>>();
        let attributes = match facts.attributes.as_str() {
            "" => Vec::new(),
            text => read_call_attributes(text)?,
        };
        let attributes = Dictionary::new(attributes)?;
        let (mut function, mut instantiate) = (Function::Python, None);
        if !python::is_callback(name) {
            let missing = || {
                let told = format!(
                    "no function is registered for the custom call `{name}`: jax.ffi.register_ffi_target(\"{name}\", ..., platform=\"cpu\") registers one"
                );
                Failure::new(Code::Unimplemented, told)
            };
            let (first, execute) = registry::handlers(name).ok_or_else(missing)?.handlers(name)?;
            (function, instantiate) = (Function::Handler(execute), first);
            let packed = |all: &[Option<Array>]| {
                all.iter().flatten().any(|a| a.dtype().is_ok_and(|t| t.bits() < 8 && t != DType::Pred))
            };
            if packed(&facts.args) || packed(&facts.results) {
                let told = format!(
                    "`{name}` gets arrays of less than 8 bits an element, which tfaot does not pack as handlers expect"
                );
                return Err(Failure::new(Code::Unimplemented, told));
            }
        }
        let site = CallSite {
            function,
            attributes,
            args: values(&facts.args)?,
            results: values(&facts.results)?,
            aliases: facts.aliases.clone(),
            has_effect: facts.has_effect,
            instance: Instance::default(),
        };
        if let Some(handler) = instantiate {
            let context = site.context(&[], 0, 0);
            site.call_handler(handler, INSTANTIATE, &context, &[], &[])?;
        }
        Ok(site)
    }

    fn context<'a>(
        &'a self,
        user_data: &'a [super::context::UserData],
        device: c_int,
        run: i64,
    ) -> ExecutionContext<'a> {
        ExecutionContext { user_data, instance: &self.instance, device, run, memory: Default::default() }
    }

    /// Calls the function on the arrays of a step: those that are read, then those that are written.
    ///
    /// # Safety
    /// `arrays` points to a pointer for each array of the call, as the program passes them.
    ///
    /// # Errors
    /// Those of the function.
    pub unsafe fn call(&self, arrays: *const *mut u8, call: &super::CallContext) -> Result<(), Failure> {
        let mut next = 0;
        let mut take = |value: &Value| {
            if value.bytes.is_none() {
                return value.buffer(std::ptr::null_mut());
            }
            // SAFETY: the caller has a pointer for each array, in this order.
            let data = unsafe { *arrays.add(next) };
            next += 1;
            value.buffer(data)
        };
        // the scalar that orders effects stands first, and says nothing
        let ordering = Value { dtype: 0, dims: Vec::new(), bytes: Some(0) };
        if self.has_effect {
            take(&ordering);
        }
        let mut args: Vec<Buffer> = self.args.iter().map(&mut take).collect();
        if self.has_effect {
            take(&ordering);
        }
        let results: Vec<Buffer> = self.results.iter().map(&mut take).collect();
        for &(result, operand) in &self.aliases {
            let (Some(to), Some(from)) = (results.get(result), args.get_mut(operand)) else { continue };
            let bytes = self.args[operand].bytes.unwrap_or(0).min(self.results[result].bytes.unwrap_or(0));
            // SAFETY: both have as many bytes, and are different arrays of the program.
            unsafe { std::ptr::copy_nonoverlapping(from.data.cast::<u8>(), to.data.cast(), bytes) };
            from.data = to.data;
        }
        match self.function {
            Function::Handler(handler) => {
                let context = self.context(call.user_data, call.device, call.run);
                self.call_handler(handler, EXECUTE, &context, &args, &results)
            }
            Function::Python => python::call(call.user_data, self.attributes.index(), &args, &results),
        }
    }

    fn call_handler(
        &self,
        handler: Handler,
        stage: c_int,
        context: &ExecutionContext,
        args: &[Buffer],
        results: &[Buffer],
    ) -> Result<(), Failure> {
        let pointers = |all: &[Buffer]| all.iter().map(std::ptr::from_ref).collect::<Vec<_>>();
        let (args, results) = (pointers(args), pointers(results));
        let types = vec![structs::BUFFER; args.len().max(results.len())];
        let values = |all: &[*const Buffer]| Values {
            struct_size: size_of::<Values>(),
            extension_start: std::ptr::null_mut(),
            size: all.len() as i64,
            types: types.as_ptr(),
            values: all.as_ptr(),
        };
        let mut frame = CallFrame {
            struct_size: structs::CALL_FRAME_BYTES,
            extension_start: std::ptr::null_mut(),
            api: api::api(),
            ctx: std::ptr::from_ref(context).cast(),
            stage,
            args: values(&args),
            rets: values(&results),
            attrs: self.attributes.attrs(),
            future: std::ptr::null_mut(),
        };
        // SAFETY: the handler gets a call frame of its interface, whose memory lives until it has ended.
        let error = unsafe { handler(&raw mut frame) };
        api::take_error(error)?;
        api::wait(frame.future)
    }
}
