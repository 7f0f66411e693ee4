//! One lane of a narrowed vector is stored as one element, which LLVM 22 gets wrong (docs/notes/llvm-masked-store.md).
use crate::common::{npz, succeed};
use tfaot::codegen::{self, TextForm};
use tfaot::target::{IsaLevel, Target};
use tfaot::{compile, hlo::text};

/// Lines with masked stores in LLVM's text of a module for x86-64-v4.
fn masked_stores(hlo: &str) -> Vec<String> {
    let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4"), None).expect("a known processor");
    let lowered = compile::wrap_module(text::parse(hlo).expect("sound HLO text")).expect("arrays in and out");
    let (_, program) = compile::plan(lowered, "m", "m", &target).expect("kernels");
    let ir = codegen::print(&program, &target, TextForm::LlvmIr).expect("LLVM's text");
    ir.lines().filter(|l| l.contains("call void @llvm.masked.store")).map(String::from).collect()
}

#[test]
fn a_lane_alone_is_stored_as_a_scalar() {
    for (from, to) in [("f32", "s8"), ("f32", "bf16"), ("f32", "f16"), ("s32", "s16"), ("s64", "u8"), ("s64", "s32")] {
        for (columns, masked) in [(17, false), (33, false), (18, true), (31, true)] {
            let hlo = format!(
                "HloModule m\nENTRY e {{\n  x = {from}[3,{columns}] parameter(0)\n  ROOT r = {to}[3,{columns}] convert(x)\n}}\n"
            );
            let all = masked_stores(&hlo);
            let alone: Vec<&String> = all.iter().filter(|l| l.matches("i1 true").count() == 1).collect();
            assert!(alone.is_empty(), "{from} to {to}, {columns} columns: {alone:?}");
            assert!(!masked || !all.is_empty(), "{from} to {to}, {columns} columns: nothing is masked");
        }
    }
}

/// One column of rows of 16 is narrowed and written over what the state of the loop holds, which LLVM makes a masked store.
const KEPT: &str = "HloModule m
body {
  s = (s32[], s16[64,16], s32[64,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  y = s16[64,16] get-tuple-element(s), index=1
  x = s32[64,16] get-tuple-element(s), index=2
  k = s32[64,16] iota(), iota_dimension=1
  three = s32[] constant(3)
  t = s32[64,16] broadcast(three), dimensions={}
  c = pred[64,16] compare(k, t), direction=EQ
  n = s16[64,16] convert(x)
  z = s16[64,16] select(c, n, y)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], s16[64,16], s32[64,16]) tuple(j, z, x)
}
cond {
  s = (s32[], s16[64,16], s32[64,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY e {
  a = s16[64,16] parameter(0)
  b = s32[64,16] parameter(1)
  zero = s32[] constant(0)
  na = s16[64,16] negate(a)
  nb = s32[64,16] negate(b)
  s = (s32[], s16[64,16], s32[64,16]) tuple(zero, na, nb)
  w = (s32[], s16[64,16], s32[64,16]) while(s), condition=cond, body=body
  y = s16[64,16] get-tuple-element(w), index=1
  ROOT r = s16[64,16] negate(y)
}
";

#[test]
fn a_lane_that_is_replaced_leaves_its_neighbours() {
    if Target::resolve(None, None, None).expect("this machine is known").level != IsaLevel::Avx512 {
        eprintln!("SKIPPED: this machine has no AVX-512");
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("m.hlo"), KEPT).expect("written");
    succeed(&["hlo", "eval", &file("m.hlo"), "--outputs", &file("want.npz")]);
    succeed(&["hlo", "run", &file("m.hlo"), "--cpu", "x86-64-v4", "--outputs", &file("got.npz")]);
    let [want, got] = ["want.npz", "got.npz"].map(|name| npz(&folder.path().join(name)));
    assert_eq!(got, want);
}
