//! Handlers by the name that programs call them by, and the types of data that handlers keep.
use super::python;
use super::structs::{
    ApiVersion, CALL_FRAME_BYTES, CallFrame, ExtensionBase, Handler, METADATA, Metadata, MetadataExtension, VERSION,
};
use crate::failure::{Code, Failure};
use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The handlers of one name: `XLA_FFI_Handler_Bundle`.
#[derive(Clone, Copy, Debug)]
pub struct Bundle {
    /// Handlers of the stages instantiate, prepare, initialize and execute.
    stages: [Option<Handler>; 4],
}

impl Bundle {
    /// Handlers of the four stages in order, null where there is none.
    pub fn of_pointers(stages: [*mut c_void; 4]) -> Bundle {
        // SAFETY: a pointer that is not null is one to a handler, as callers promise, and null is the option's none.
        let handler = |at: *mut c_void| unsafe { std::mem::transmute::<*mut c_void, Option<Handler>>(at) };
        Bundle { stages: stages.map(handler) }
    }

    /// The handler that makes what a call site keeps, and the one that runs.
    ///
    /// # Errors
    /// `Code::Unimplemented` for handlers of other stages; `Code::InvalidArgument` where none runs.
    pub fn handlers(&self, name: &str) -> Result<(Option<Handler>, Handler), Failure> {
        match self.stages {
            [instantiate, None, None, Some(execute)] => Ok((instantiate, execute)),
            [_, _, _, None] => Err(Failure::new(Code::InvalidArgument, format!("`{name}` has no handler that runs"))),
            _ => {
                let told = format!(
                    "`{name}` has a handler that prepares or initializes a call, and tfaot's plugin runs no such"
                );
                Err(Failure::new(Code::Unimplemented, told))
            }
        }
    }
}

/// A registered type.
struct Type {
    id: i64,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

#[derive(Default)]
struct Registry {
    handlers: HashMap<String, Bundle>,
    types: HashMap<String, Type>,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether programs may call a function.
pub fn is_callable(name: &str) -> bool {
    python::is_callback(name) || registry().handlers.contains_key(name)
}

/// The handlers of a name.
pub fn handlers(name: &str) -> Option<Bundle> {
    registry().handlers.get(name).copied()
}

/// Registers handlers; those of an earlier registration of the name stay with the programs that have them.
///
/// # Errors
/// `Code::Unimplemented` for handlers of another major version of XLA's interface.
pub fn register_handler(name: &str, bundle: Bundle) -> Result<(), Failure> {
    for handler in bundle.stages.into_iter().flatten() {
        let version = version_of(handler);
        if version[0] != VERSION[0] {
            let told = format!(
                "the handler of `{name}` is of version {}.{} of XLA's FFI, and tfaot has {}.{}",
                version[0], version[1], VERSION[0], VERSION[1]
            );
            return Err(Failure::new(Code::Unimplemented, told));
        }
    }
    registry().handlers.insert(name.to_string(), bundle);
    Ok(())
}

/// The version of the interface that a handler was compiled with: it fills in a struct that stands in the chain of extensions.
fn version_of(handler: Handler) -> [i32; 2] {
    let mut metadata = Metadata {
        struct_size: size_of::<Metadata>(),
        api_version: ApiVersion {
            struct_size: size_of::<ApiVersion>(),
            extension_start: std::ptr::null_mut(),
            major_version: VERSION[0],
            minor_version: VERSION[1],
        },
        traits: 0,
        state_type_id: 0,
    };
    let mut extension = MetadataExtension {
        base: ExtensionBase { struct_size: size_of::<MetadataExtension>(), kind: METADATA, next: std::ptr::null_mut() },
        metadata: &raw mut metadata,
    };
    let mut frame = MaybeUninit::<CallFrame>::zeroed();
    // SAFETY: zeros are values of all fields: numbers and pointers. A handler looks at the extension alone where there is one, as the interface says.
    let error = unsafe {
        let frame = frame.as_mut_ptr();
        (*frame).struct_size = CALL_FRAME_BYTES;
        (*frame).extension_start = (&raw mut extension).cast();
        (*frame).api = super::api::api();
        handler(frame)
    };
    super::api::drop_error(error);
    [metadata.api_version.major_version, metadata.api_version.minor_version]
}

/// Registers a type of data; returns its number, which is chosen where the caller gives 0.
///
/// # Errors
/// `Code::InvalidArgument` where the name or the number is another type's.
pub fn register_type(name: &str, id: i64, deleter: Option<unsafe extern "C" fn(*mut c_void)>) -> Result<i64, Failure> {
    let mut registry = registry();
    if let Some(known) = registry.types.get(name) {
        if id != 0 && id != known.id {
            let told = format!("the type `{name}` has number {}, and is registered as {id}", known.id);
            return Err(Failure::new(Code::InvalidArgument, told));
        }
        return Ok(known.id);
    }
    let is_taken = |id: i64| registry.types.values().any(|t| t.id == id);
    if id != 0 && is_taken(id) {
        return Err(Failure::new(Code::InvalidArgument, format!("the number {id} of type `{name}` is another type's")));
    }
    let own = || (1..).find(|&id| !is_taken(id)).unwrap_or(i64::MAX);
    let id = if id == 0 { own() } else { id };
    registry.types.insert(name.to_string(), Type { id, deleter });
    Ok(id)
}

/// The function that frees data of a type.
pub fn deleter(id: i64) -> Option<unsafe extern "C" fn(*mut c_void)> {
    registry().types.values().find(|t| t.id == id).and_then(|t| t.deleter)
}
