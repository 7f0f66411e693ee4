//! The interface as a program in C walks it: through the table, struct by struct.
use crate::boundary::object;
use crate::c_api::base::*;
use crate::c_api::buffer::*;
use crate::c_api::client::*;
use crate::c_api::executable::*;
use crate::c_api::objects::{Buffer, Client, Executable, Failure, LoadedExecutable};
use crate::table::{api, function};
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// A struct of arguments with its size and zeros behind it, as `{sizeof args}` in C.
fn args<A>() -> A {
    let mut args = MaybeUninit::<A>::zeroed();
    // SAFETY: all fields are numbers, pointers and truth values, of which zeros are values; the first one is the size.
    unsafe {
        args.as_mut_ptr().cast::<usize>().write(size_of::<A>());
        args.assume_init()
    }
}

/// Calls a function of the table by its name.
fn try_call<A>(name: &str, args: &mut A) -> Result<(), (i32, String)> {
    let entry = function(name).expect(name);
    // SAFETY: the struct belongs to the function, as the tests are written.
    let error = unsafe { entry(std::ptr::from_mut(args).cast()) }.cast::<Failure>();
    if error.is_null() {
        return Ok(());
    }
    let (mut code, mut message) = (self::args::<ErrorGetCodeArgs>(), self::args::<ErrorMessageArgs>());
    (code.error, message.error) = (error, error);
    call("PJRT_Error_GetCode", &mut code);
    call("PJRT_Error_Message", &mut message);
    let text = crate::boundary::text(message.message, message.message_size);
    let mut destroy = self::args::<ErrorDestroyArgs>();
    destroy.error = error;
    call("PJRT_Error_Destroy", &mut destroy);
    Err((code.code, text))
}

fn call<A>(name: &str, args: &mut A) {
    try_call(name, args).unwrap_or_else(|error| panic!("{name}: {error:?}"));
}

pub(crate) fn client() -> *mut Client {
    let mut create = args::<ClientCreateArgs>();
    call("PJRT_Client_Create", &mut create);
    create.client
}

pub(crate) fn destroy_client(client: *mut Client) {
    let mut destroy = args::<ClientDestroyArgs>();
    destroy.client = client;
    call("PJRT_Client_Destroy", &mut destroy);
}

const MODULE: &str = "module @double {
  func.func public @main(%arg0: tensor<2x3xf32> {jax.buffer_donor = true}) -> tensor<3x2xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2x3xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %1 : tensor<3x2xf32>
  }
}";

pub(crate) fn compile(client: *mut Client, text: &str) -> Result<*mut LoadedExecutable, (i32, String)> {
    let mut program = args::<Program>();
    (program.code, program.code_size) = (text.as_ptr().cast_mut().cast(), text.len());
    let mut compile = args::<ClientCompileArgs>();
    (compile.client, compile.program) = (client, &raw const program);
    try_call("PJRT_Client_Compile", &mut compile).map(|()| compile.executable)
}

/// A buffer of f32 over the values, which are copied unless they may be shared.
pub(crate) fn buffer(
    client: *mut Client,
    values: &[f32],
    dims: &[i64],
    strides: &[i64],
    semantics: i32,
) -> *mut Buffer {
    let mut from = args::<ClientBufferFromHostBufferArgs>();
    (from.client, from.data, from.kind) = (client, values.as_ptr().cast(), 11);
    (from.dims, from.num_dims) = (dims.as_ptr(), dims.len());
    (from.byte_strides, from.num_byte_strides) = (strides.as_ptr(), strides.len());
    from.host_buffer_semantics = semantics;
    call("PJRT_Client_BufferFromHostBuffer", &mut from);
    let mut event = args::<EventDestroyArgs>();
    event.event = from.done_with_host_buffer;
    call("PJRT_Event_Destroy", &mut event);
    from.buffer
}

pub(crate) fn values(buffer: *mut Buffer) -> Vec<f32> {
    let mut to = args::<BufferToHostBufferArgs>();
    to.src = buffer;
    call("PJRT_Buffer_ToHostBuffer", &mut to);
    let mut values = vec![0f32; to.dst_size / 4];
    to.dst = values.as_mut_ptr().cast();
    call("PJRT_Buffer_ToHostBuffer", &mut to);
    let mut event = args::<EventDestroyArgs>();
    event.event = to.event;
    call("PJRT_Event_Destroy", &mut event);
    values
}

pub(crate) fn destroy_buffer(buffer: *mut Buffer) {
    let mut destroy = args::<BufferDestroyArgs>();
    destroy.buffer = buffer;
    call("PJRT_Buffer_Destroy", &mut destroy);
}

pub(crate) fn execute(executable: *mut LoadedExecutable, inputs: &[*mut Buffer]) -> Result<*mut Buffer, (i32, String)> {
    let (list, mut output) = (inputs.as_ptr(), std::ptr::null_mut::<Buffer>());
    let outputs = &raw mut output;
    let mut execute = args::<LoadedExecutableExecuteArgs>();
    let mut options = args::<ExecuteOptions>();
    execute.executable = executable;
    execute.options = &raw mut options;
    execute.argument_lists = &raw const list;
    (execute.num_devices, execute.num_args) = (1, inputs.len());
    execute.output_lists = &raw const outputs;
    try_call("PJRT_LoadedExecutable_Execute", &mut execute).map(|()| output)
}

pub(crate) fn destroy_executable(executable: *mut LoadedExecutable) {
    let mut destroy = args::<LoadedExecutableDestroyArgs>();
    destroy.executable = executable;
    call("PJRT_LoadedExecutable_Destroy", &mut destroy);
}

#[test]
fn a_program_is_compiled_called_and_gives_its_memory_back() {
    let client = client();
    let executable = compile(client, MODULE).expect("it compiles");
    let host = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    for (strides, semantics) in [(&[][..], 0), (&[12, 4][..], 2), (&[4, 8][..], 0)] {
        let input = buffer(client, &host, &[2, 3], strides, semantics);
        let output = execute(executable, &[input]).expect("it runs");
        let wanted =
            if strides == [4, 8] { [2.0, 4.0, 6.0, 8.0, 10.0, 12.0] } else { [2.0, 8.0, 4.0, 10.0, 6.0, 12.0] };
        assert_eq!(values(output), wanted);
        let mut deleted = args::<BufferIsDeletedArgs>();
        deleted.buffer = input;
        call("PJRT_Buffer_IsDeleted", &mut deleted);
        assert!(deleted.is_deleted, "the argument is donated");
        let (code, text) = execute(executable, &[input]).expect_err("it is gone");
        assert!(code == 3 && text.contains("donated"), "{text}");
        [input, output].into_iter().for_each(destroy_buffer);
    }
    destroy_executable(executable);
    destroy_client(client);
}

#[test]
fn an_executable_survives_as_bytes() {
    let client = client();
    let loaded = compile(client, MODULE).expect("it compiles");
    let mut get = args::<LoadedExecutableGetExecutableArgs>();
    get.loaded_executable = loaded;
    call("PJRT_LoadedExecutable_GetExecutable", &mut get);
    let executable: *mut Executable = get.executable;
    let mut serialize = args::<ExecutableSerializeArgs>();
    serialize.executable = executable;
    call("PJRT_Executable_Serialize", &mut serialize);
    let bytes =
        crate::boundary::slice(serialize.serialized_bytes.cast::<u8>(), serialize.serialized_bytes_size).to_vec();
    assert!(bytes.starts_with(b"\x7fELF"));
    let delete = serialize.serialized_executable_deleter.expect("a function");
    // SAFETY: the function belongs to these bytes.
    unsafe { delete(serialize.serialized_executable) };
    let mut destroy = args::<ExecutableDestroyArgs>();
    destroy.executable = executable;
    call("PJRT_Executable_Destroy", &mut destroy);
    destroy_executable(loaded);
    let load = |bytes: &[u8]| {
        let mut load = args::<ExecutableDeserializeAndLoadArgs>();
        load.client = client;
        (load.serialized_executable, load.serialized_executable_size) = (bytes.as_ptr().cast(), bytes.len());
        try_call("PJRT_Executable_DeserializeAndLoad", &mut load).map(|()| load.loaded_executable)
    };
    let again = load(&bytes).expect("it loads");
    let input = buffer(client, &[1.0; 6], &[2, 3], &[], 0);
    let output = execute(again, &[input]).expect("it runs");
    assert_eq!(values(output), [2.0; 6]);
    [input, output].into_iter().for_each(destroy_buffer);
    destroy_executable(again);
    assert!(load(&bytes[..bytes.len() - 1]).is_err() && load(b"nothing").is_err());
    destroy_client(client);
}

#[test]
fn what_is_wrong_is_an_error_and_no_end_of_the_process() {
    let client = client();
    let mut short = args::<ClientDevicesArgs>();
    (short.client, short.struct_size) = (client, 8);
    let (code, text) = try_call("PJRT_Client_Devices", &mut short).expect_err("too short");
    assert!(code == 3 && text.contains("8 bytes"), "{text}");
    let (code, _) = try_call("PJRT_Client_Devices", &mut args::<ClientDevicesArgs>()).expect_err("null");
    assert_eq!(code, 3);
    let (code, text) = try_call("PJRT_Client_DmaMap", &mut args::<ClientDevicesArgs>()).expect_err("there is none");
    assert!(code == 12 && text.contains("PJRT_Client_DmaMap"), "{text}");
    let (_, text) = compile(client, "module {").expect_err("no module");
    assert!(text.contains("TFA0"), "{text}");
    let executable = compile(client, MODULE).expect("it compiles");
    let other = buffer(client, &[1.0; 6], &[3, 2], &[], 0);
    let (_, text) = execute(executable, &[other]).expect_err("another shape");
    assert!(text.contains("argument 0 is f32[3, 2]"), "{text}");
    assert!(execute(executable, &[]).is_err());
    destroy_buffer(other);
    destroy_executable(executable);
    destroy_client(client);
}

#[test]
fn the_table_says_its_version_and_has_every_function() {
    let table: *const c_void = std::ptr::from_ref(api()).cast();
    // SAFETY: the table begins with its size, behind which are the extensions and the version.
    let size = unsafe { *table.cast::<usize>() };
    assert_eq!(size, size_of::<usize>() * 5 + size_of::<usize>() * crate::table::COUNT);
    assert!(object(table).is_ok() && function("PJRT_Event_Set").is_some() && function("PJRT_Nothing").is_none());
}

#[test]
fn memory_does_not_grow_with_compiles_and_calls() {
    let client = client();
    let round = |rounds: usize| {
        for _ in 0..rounds {
            let executable = compile(client, MODULE).expect("it compiles");
            let input = buffer(client, &[1.0; 6], &[2, 3], &[], 0);
            let output = execute(executable, &[input]).expect("it runs");
            [input, output].into_iter().for_each(destroy_buffer);
            destroy_executable(executable);
        }
    };
    round(20);
    let before = crate::storage::bytes_in_use();
    round(20);
    // other tests run at the same time, and hold at most a few small arrays
    assert!(crate::storage::bytes_in_use() <= before + 4096);
    destroy_client(client);
}
