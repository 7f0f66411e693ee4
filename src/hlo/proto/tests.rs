use super::*;
use crate::hlo::{text, verify};

/// Text to message to text.
fn check(source: &str) {
    let module = text::parse(source).expect("parses");
    verify::verify(&module).expect("is valid");
    let bytes = encode(&module).expect("is written");
    assert!(is_message(&bytes));
    let back = decode(&bytes).expect("is read");
    assert_eq!(text::print(&back), text::print(&module));
}

#[test]
fn ops_of_every_kind_of_field_come_back() {
    check(
        "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, must-alias) }, frontend_attributes={a=\"b\"}
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
cond { s = f32[2,3] parameter(0)
  ROOT t = pred[] constant(false) }
body { u = f32[2,3] parameter(0)
  ROOT v = f32[2,3] negate(u), metadata={op_type=\"Neg\" op_name=\"a/b\"} }
ENTRY e { p = f32[2,3]{0,1:T(8,128)S(1)} parameter(0), sharding={devices=[2,1]<=[2]}
  k = s4[5]{0} constant({1,-2,3,-4,5})
  c = f32[2,3]{0,1} constant({{1,2,3},{4,5,6}})
  w = f32[2,3] while(p), condition=cond, body=body
  z = f32[] constant(0)
  q = f32[5,4] pad(w, z), padding=1_2x-1_0_1
  d = f32[3,3] dot(w, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision={highest,high}
  i = f32[1,4,4,3] parameter(1)
  f = f32[2,2,3,7] parameter(2)
  n = f32[1,4,4,7] convolution(i, f), window={size=2x2 pad=0_1x1_0 rhs_dilate=1x1}, dim_labels=b01f_01io->b01f
  j = f32[4,3] reduce(i, z), dimensions={0,1}, to_apply=add
  g = pred[2,3] compare(c, w), direction=LT
  o = f32[2,3] custom-call(p), custom_call_target=\"f\", backend_config=\"x\\n\", api_version=API_VERSION_TYPED_FFI
  ROOT end = (f32[2,3], f32[4,3]) tuple(o, j), control-predecessors={%n, %g} }",
    );
}

#[test]
fn broken_messages_are_refused() {
    let bytes =
        encode(&text::parse("ENTRY e { ROOT a = f32[3] constant({1,2,3}) }").expect("parses")).expect("is written");
    for cut in 0..bytes.len() {
        assert!(decode(&bytes[..cut]).is_err(), "the first {cut} bytes");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] = damaged[at].wrapping_add(0x41);
        // Any answer but a panic.
        if let Ok(module) = decode(&damaged) {
            drop(verify::verify(&module));
        }
    }
}
