use super::*;
use crate::hlo::verify;

fn separated(text: &str) -> (Module, HostCalls) {
    let mut module: Module = text.parse().expect("a module");
    let calls = separate_host_calls(&mut module, &|target| target == "note").expect("it is separated");
    verify::verify(&module).expect("it is valid");
    (module, calls)
}

#[test]
fn tokens_become_arrays_and_calls_get_numbers() {
    let (module, calls) = separated(
        "HloModule m\nENTRY e {\n  t = token[] parameter(0)\n  x = f32[2,3] parameter(1)\n  \
         c = (token[], f32[3,2]{0,1}) custom-call(t, x), custom_call_target=\"note\", operand_layout_constraints={token[], f32[2,3]{0,1}}, \
         api_version=API_VERSION_TYPED_FFI, backend_config={a = 1 : i64}, output_to_operand_aliasing={{1}: (1, {})}\n  \
         u = token[] get-tuple-element(c), index=0\n  y = f32[3,2] get-tuple-element(c), index=1\n  \
         d = token[] custom-call(u), custom_call_target=\"note\", custom_call_has_side_effect=true\n  \
         o = f32[3,2] custom-call(y), custom_call_target=\"other\"\n  ROOT r = (token[], f32[3,2]) tuple(d, o)\n}\n",
    );
    assert!(calls.has_effects && calls.all.len() == 2);
    let first = &calls.all[0];
    assert_eq!((first.api_version, &first.config[..], &first.aliases[..]), (4, &b"{a = 1 : i64}"[..], &[(1, 1)][..]));
    assert_eq!((first.args[0].clone(), first.results[0].clone()), (Shape::Token, Shape::Token));
    assert_eq!(first.args[1].to_string(), "f32[2,3]{0,1}");
    let text = module.to_string();
    assert!(!text.contains("token[]"), "{text}");
    let root = &module.entry().insts[module.entry().root].shape;
    assert_eq!(root.to_string(), "(pred[0], f32[3,2], s32[])");
}

#[test]
fn modules_without_effects_keep_their_results() {
    let text = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  c = f32[2] custom-call(x), custom_call_target=\"note\"\n  \
                d = f32[2] custom-call(c), custom_call_target=\"other\", custom_call_has_side_effect=true\n  ROOT r = f32[2] add(c, d)\n}\n";
    let (module, calls) = separated(text);
    assert!(!calls.has_effects && calls.all.len() == 1);
    assert_eq!(module.entry().insts[module.entry().root].shape.to_string(), "f32[2]");
    let (_, calls) = separated("HloModule m\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n");
    assert!(calls.all.is_empty());
}

#[test]
fn what_is_no_call_of_arrays_is_refused() {
    for (call, told) in [
        ("((f32[2], f32[2]), f32[2]) custom-call(x), custom_call_target=\"note\"", "has tuples in tuples"),
        ("(f32[2], f32[2]) custom-call(p), custom_call_target=\"note\"", "has tuples in tuples"),
    ] {
        let (shape, _) = call.split_once(" custom-call").expect("a call");
        let text = format!(
            "HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n  p = (f32[2]) tuple(x)\n  ROOT c = {call}\n}}\n"
        );
        let mut module: Module = text.parse().expect(shape);
        let error = separate_host_calls(&mut module, &|_| true).expect_err(call).to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn texts_of_aliases_are_read() {
    assert_eq!(aliases("{}"), Some(vec![]));
    assert_eq!(aliases("{{}: (0, {})}"), Some(vec![(0, 0)]));
    assert_eq!(aliases("{{1}: (2, {}), {0}: (0, {}, must-alias)}"), Some(vec![(1, 2), (0, 0)]));
    assert_eq!(aliases("{{}: (0, {1})}"), None);
}
