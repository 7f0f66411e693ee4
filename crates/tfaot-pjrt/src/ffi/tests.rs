//! Programs that call handlers: order and number of calls with effects, attributes, errors.
use super::registry::{Bundle, register_handler};
use super::structs::{Buffer, ByteSpan, CallFrame, Scalar};
use crate::c_api::objects::Client;
use crate::tests::{buffer, client, compile, destroy_buffer, destroy_client, destroy_executable, execute, values};
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Mutex;

/// Calls of the handler `note`: the attribute `tag`, and the first element of its operand.
static NOTES: Mutex<Vec<(i64, f32)>> = Mutex::new(Vec::new());

/// The integer attribute `tag` of a call.
unsafe fn tag(frame: &CallFrame) -> i64 {
    // SAFETY: the calls of these tests have attributes that are integers.
    unsafe {
        for i in 0..frame.attrs.size as usize {
            let name: &ByteSpan = &**frame.attrs.names.add(i);
            if std::slice::from_raw_parts(name.ptr.cast::<u8>(), name.len) == b"tag" {
                let scalar: &Scalar = &*(*frame.attrs.attrs.add(i)).cast();
                return scalar.value.cast::<i64>().read();
            }
        }
    }
    0
}

/// Notes a call, and returns the operand plus one where there is a result; fails for the tag 13.
unsafe extern "C" fn note(frame: *mut CallFrame) -> *mut super::api::FfiError {
    // SAFETY: the plugin passes a frame; a call has at most one operand, which is an array of f32 of one element.
    unsafe {
        let frame = &*frame;
        if !frame.extension_start.is_null() {
            return std::ptr::null_mut();
        }
        let mut value = 0.0;
        for i in 0..frame.args.size as usize {
            let arg: &Buffer = &**frame.args.values.add(i);
            if arg.dtype == 11 {
                value = arg.data.cast::<f32>().read();
            }
        }
        let tag = tag(frame);
        NOTES.lock().expect("no test fails with it").push((tag, value));
        if frame.rets.size > 0 {
            let result: &Buffer = &**frame.rets.values;
            if result.dtype == 11 {
                result.data.cast::<f32>().write(value + 1.0);
            }
        }
        if tag == 13 { fail(frame) } else { std::ptr::null_mut() }
    }
}

/// An error, made by the function that the frame's table has for it.
unsafe fn fail(frame: &CallFrame) -> *mut super::api::FfiError {
    #[repr(C)]
    struct ErrorCreate {
        struct_size: usize,
        extension_start: *mut c_void,
        message: *const c_char,
        code: c_int,
    }
    let message = CString::new("no luck").expect("no zero");
    let mut args = ErrorCreate {
        struct_size: size_of::<ErrorCreate>(),
        extension_start: std::ptr::null_mut(),
        message: message.as_ptr(),
        code: 9,
    };
    // SAFETY: the first function of the table stands behind the size, the extensions, the version and one pointer.
    unsafe {
        let table = frame.api.cast::<*const c_void>();
        let create = *table.add(2 + 3 + 1);
        let create: unsafe extern "C" fn(*mut ErrorCreate) -> *mut super::api::FfiError = std::mem::transmute(create);
        create(&raw mut args)
    }
}

/// Runs a module on one number, and returns the result with the calls that were noted.
fn run(client: *mut Client, text: &str, x: f32) -> (Result<f32, (i32, String)>, Vec<(i64, f32)>) {
    let executable = compile(client, text).expect("it compiles");
    let input = buffer(client, &[x], &[], &[], 0);
    NOTES.lock().expect("no test fails with it").clear();
    let result = execute(executable, &[input]).map(|output| {
        let value = values(output)[0];
        destroy_buffer(output);
        value
    });
    destroy_buffer(input);
    destroy_executable(executable);
    (result, std::mem::take(&mut NOTES.lock().expect("no test fails with it")))
}

/// A module of one function from `%x` to the value that `body` returns.
fn module(body: &str, more: &str) -> String {
    let call = |tag: i64| {
        format!(
            "stablehlo.custom_call @note(%x) {{has_side_effect = true, mhlo.backend_config = {{tag = {tag} : i64}}}} : (tensor<f32>) -> ()"
        )
    };
    let mut text =
        format!("module @m {{\n  func.func public @main(%x: tensor<f32>) -> tensor<f32> {{\n{body}  }}\n{more}}}\n");
    for tag in 1..=13 {
        text = text.replace(&format!("NOTE{tag}\n"), &format!("{}\n", call(tag)));
    }
    text
}

#[test]
fn effects_happen_in_the_order_of_the_program() {
    register_handler(
        "note",
        Bundle::of_pointers([std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut(), note as *mut c_void]),
    )
    .expect("it is registered");
    let client = client();

    // nothing reads what the calls return, one is in a function, and a result is computed from another call
    let body = "    NOTE1\n    %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>\n    NOTE2\n    \
        %1 = stablehlo.custom_call @note(%0) {mhlo.backend_config = {tag = 7 : i64}} : (tensor<f32>) -> tensor<f32>\n    return %1 : tensor<f32>\n";
    let f = "  func.func private @f(%x: tensor<f32>) -> tensor<f32> {\n    NOTE3\n    %0 = stablehlo.add %x, %x : tensor<f32>\n    return %0 : tensor<f32>\n  }\n";
    let (result, mut notes) = run(client, &module(body, f), 5.0);
    assert_eq!(result.expect("it runs"), 11.0);
    notes.retain(|note| note.0 != 7);
    assert_eq!(notes, [(1, 5.0), (3, 5.0), (2, 5.0)]);

    // a loop with calls in the condition, in the body and in one of two branches
    let body = "    NOTE1\n    %0 = stablehlo.while(%y = %x) : tensor<f32>\n     cond {\n      %x = stablehlo.abs %y : tensor<f32>\n      NOTE2\n      \
        %c = stablehlo.constant dense<3.0> : tensor<f32>\n      %p = stablehlo.compare LT, %y, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>\n      stablehlo.return %p : tensor<i1>\n    } do {\n      \
        %x = stablehlo.abs %y : tensor<f32>\n      NOTE3\n      %two = stablehlo.constant dense<2.0> : tensor<f32>\n      %one = stablehlo.constant dense<1.0> : tensor<f32>\n      \
        %q = stablehlo.compare GE, %y, %two : (tensor<f32>, tensor<f32>) -> tensor<i1>\n      \
        %r = \"stablehlo.if\"(%q) ({\n        NOTE4\n        stablehlo.return %one : tensor<f32>\n      }, {\n        stablehlo.return %one : tensor<f32>\n      }) : (tensor<i1>) -> tensor<f32>\n      \
        %z = stablehlo.add %y, %r : tensor<f32>\n      stablehlo.return %z : tensor<f32>\n    }\n    NOTE5\n    return %0 : tensor<f32>\n";
    let (result, notes) = run(client, &module(body, ""), 1.0);
    assert_eq!(result.expect("it runs"), 3.0);
    let wanted = [(1, 1.0), (2, 1.0), (3, 1.0), (2, 2.0), (3, 2.0), (4, 2.0), (2, 3.0), (5, 1.0)];
    assert_eq!(notes, wanted);

    // an error ends the call, with the handler's code and message, and the client goes on
    let (result, notes) =
        run(client, &module("    NOTE1\n    NOTE13\n    NOTE2\n    return %x : tensor<f32>\n", ""), 1.0);
    assert_eq!((result, notes), (Err((9, "no luck".to_string())), vec![(1, 1.0), (13, 1.0)]));
    assert_eq!(run(client, &module("    return %x : tensor<f32>\n", ""), 4.0).0, Ok(4.0));
    destroy_client(client);
}

#[test]
fn what_cannot_be_called_is_refused_by_name() {
    let client = client();
    let call = |attrs: &str| {
        let body = format!(
            "    %0 = stablehlo.custom_call @nobody(%x) {{{attrs}}} : (tensor<f32>) -> tensor<f32>\n    return %0 : tensor<f32>\n"
        );
        compile(client, &module(&body, "")).expect_err("nobody has it").1
    };
    assert!(call("mhlo.backend_config = {}").contains("no function is registered for the custom call `nobody`"));
    let sort = "    %0 = stablehlo.iota dim = 0 : tensor<4xf32>\n    %1 = \"stablehlo.reduce\"(%0, %x) ({\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n      \
        stablehlo.custom_call @xla_note(%a) {has_side_effect = true, mhlo.backend_config = {}} : (tensor<f32>) -> ()\n      %s = stablehlo.add %a, %b : tensor<f32>\n      \
        stablehlo.return %s : tensor<f32>\n    }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>\n    return %1 : tensor<f32>\n";
    let none = std::ptr::null_mut();
    register_handler("xla_note", Bundle::of_pointers([none, none, none, note as *mut c_void]))
        .expect("it is registered");
    let (_, text) = compile(client, &module(sort, "")).expect_err("a reduction calls it any number of times");
    assert!(text.contains("`reduce`, which may be evaluated any number of times"), "{text}");
    let prepares = Bundle::of_pointers([none, note as *mut c_void, none, note as *mut c_void]);
    register_handler("prepares", prepares).expect("it is registered");
    let body = "    %0 = stablehlo.custom_call @prepares(%x) {mhlo.backend_config = {}} : (tensor<f32>) -> tensor<f32>\n    return %0 : tensor<f32>\n";
    let (code, text) = compile(client, &module(body, "")).expect_err("it has another stage");
    assert!(code == 12 && text.contains("prepares or initializes"), "{text}");
    destroy_client(client);
}
