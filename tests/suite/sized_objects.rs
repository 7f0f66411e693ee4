//! Functions whose sizes vary as a C or C++ programmer meets them: arrays as long as the sizes of the call, sizes that the call says,
//! sizes that are refused, variables beside, several processors in one object, under sanitizers.
use crate::common::objects::write;
use crate::common::{path, program, ran};
use std::process::Command;
use std::sync::Arc;
use tfaot::codegen::Launches;
use tfaot::compile::{self, Compiled, Functions};
use tfaot::diag::Error;
use tfaot::lower::{FixedSizeLowering, Lowered, SizeBucket, SizeVariants};
use tfaot::package::{fortran, header, metadata};
use tfaot::target::{CodeRequest, Target};
use tfaot::tensor::{Size, Sizes};

const ADD: &str = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n";

/// A function of one size `n` that the caller says and maybe one that the call says, from its text for some largest `n`.
fn function(sizes: Sizes, smaller: &[u64], changed: bool, text: &dyn Fn(u64) -> String) -> Lowered {
    let found = sizes.all.len() - 1;
    let of = |n: u64| {
        let mut lowered = crate::common::state::lowered(&text(n), 2, &[changed]);
        assert_eq!(lowered.args.pop().map(|a| a.dims), Some(vec![]), "the size");
        lowered.results.truncate(lowered.results.len() - found);
        lowered
    };
    let bucket = |&n: &u64| {
        let lowered = of(n);
        SizeBucket {
            max_sizes: vec![n],
            results: lowered.results.iter().map(|r| r.dims.clone()).collect(),
            module: lowered.module,
            is_separate: false,
        }
    };
    let exact = FixedSizeLowering(Arc::new(|_| Err(Error::internal("test", "nothing is evaluated"))));
    let (most, smaller) = (sizes.all[0].most, smaller.iter().map(bucket).collect());
    Lowered { size_variants: Some(Arc::new(SizeVariants { sizes, by_rows: false, smaller, exact })), ..of(most) }
}

fn size(name: &str, least: u64, most: u64, is_result: bool) -> Size {
    Size { name: name.to_string(), least, most, is_result, is_check: false }
}

fn mean(n: u64) -> String {
    format!(
        "HloModule mean\n{ADD}ENTRY e {{\n x = f32[{n},3] parameter(0)\n s = s32[] parameter(1)\n v = f32[2] parameter(2)\n\
         i = s32[{n},3] iota(), iota_dimension=0\n sb = s32[{n},3] broadcast(s), dimensions={{}}\n\
         is = pred[{n},3] compare(i, sb), direction=LT\n zero = f32[] constant(0)\n\
         zb = f32[{n},3] broadcast(zero), dimensions={{}}\n m = f32[{n},3] select(is, x, zb)\n\
         t = f32[3] reduce(m, zero), dimensions={{0}}, to_apply=add\n c = f32[] convert(s)\n\
         cb = f32[3] broadcast(c), dimensions={{}}\n mean = f32[3] divide(t, cb)\n y = f32[{n},3] add(x, x)\n\
         ROOT o = (f32[3], f32[{n},3]) tuple(mean, y)\n}}\n"
    )
}

fn above(n: u64) -> String {
    format!(
        "HloModule above\nsum {{ a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] add(a, b) }}\n\
         more {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GT }}\n\
         ENTRY e {{\n x = f32[{n}] parameter(0)\n s = s32[] parameter(1)\n v = f32[2] parameter(2)\n\
         i = s32[{n}] iota(), iota_dimension=0\n sb = s32[{n}] broadcast(s), dimensions={{}}\n\
         is = pred[{n}] compare(i, sb), direction=LT\n k = f32[] constant(60)\n kb = f32[{n}] broadcast(k), dimensions={{}}\n\
         gt = pred[{n}] compare(x, kb), direction=GT\n both = pred[{n}] and(is, gt)\n zero = f32[] constant(0)\n\
         zb = f32[{n}] broadcast(zero), dimensions={{}}\n m = f32[{n}] select(both, x, zb)\n\
         y = f32[{n}] sort(m), dimensions={{0}}, to_apply=more\n ones = s32[{n}] convert(both)\n none = s32[] constant(0)\n\
         c = s32[] reduce(ones, none), dimensions={{0}}, to_apply=sum\n ROOT o = (f32[{n}], s32[]) tuple(y, c)\n}}\n"
    )
}

fn total(n: u64) -> String {
    format!(
        "HloModule total\n{ADD}ENTRY e {{\n x = f32[2,{n}] parameter(0)\n s = s32[] parameter(1)\n v = f32[2] parameter(2)\n\
         i = s32[2,{n}] iota(), iota_dimension=1\n sb = s32[2,{n}] broadcast(s), dimensions={{}}\n\
         is = pred[2,{n}] compare(i, sb), direction=LT\n zero = f32[] constant(0)\n\
         zb = f32[2,{n}] broadcast(zero), dimensions={{}}\n m = f32[2,{n}] select(is, x, zb)\n\
         t = f32[2] reduce(m, zero), dimensions={{1}}, to_apply=add\n v2 = f32[2] add(v, t)\n\
         vb = f32[2,{n}] broadcast(v2), dimensions={{0}}\n y = f32[2,{n}] add(x, vb)\n\
         ROOT o = (f32[2,{n}], f32[2]) tuple(y, v2)\n}}\n"
    )
}

fn functions() -> Functions {
    let (n, row) = (|least, most| size("n", least, most, false), vec![Some(0), None]);
    let of_mean = Sizes { all: vec![n(1, 9)], args: vec![row.clone()], results: vec![vec![None], row] };
    let of_above = Sizes {
        all: vec![n(0, 100), size("found", 0, 100, true)],
        args: vec![vec![Some(0)]],
        results: vec![vec![Some(1)]],
    };
    let column = vec![vec![None, Some(0)]];
    let of_total = Sizes { all: vec![n(1, 8)], args: column.clone(), results: column };
    let mut all = vec![
        ("mean".to_string(), function(of_mean, &[4, 2], false, &mean)),
        ("above".to_string(), function(of_above, &[64], false, &above)),
        ("total".to_string(), function(of_total, &[4, 1], true, &total)),
    ];
    all[0].1.results[0].field = "mean".into();
    Functions { all, init: None }
}

fn built(targets: &[Target]) -> Compiled {
    let requests: Vec<CodeRequest> = targets.iter().map(CodeRequest::from).collect();
    compile::build_functions(functions(), "m", "m.pb", &requests, Launches::Direct, &mut []).expect("it compiles")
}

/// Compiles `source` with `compiler`, which must say nothing, and runs it.
fn called(targets: &[Target], compiler: &[&str], source: &str) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    write(&built(targets), folder.path());
    let driver = folder.path().join("driver");
    let mut build = Command::new(compiler[0]);
    build.args(&compiler[1..]).arg("-Werror").arg("-I").arg(folder.path()).arg(path(source)).args(["-x", "none"]);
    ran(build.arg(folder.path().join("m.o")).arg("-o").arg(&driver));
    ran(&mut Command::new(&driver));
}

fn here() -> Vec<Target> {
    vec![Target::resolve(None, None, None).expect("this machine")]
}

#[test]
fn functions_are_called_in_c_and_cpp() {
    let (Some(gcc), Some(cpp)) = (program(&["gcc"]), program(&["g++"])) else { return };
    let strict = ["-pedantic", "-Wall", "-Wextra"];
    called(&here(), &[&[gcc, "-std=c99"], &strict[..]].concat(), "tests/objects/sizes.c");
    called(&here(), &[&[cpp, "-std=c++17"], &strict[..], &["-x", "c++"]].concat(), "tests/objects/sizes.c");
    called(&here(), &[&[cpp, "-std=c++17"], &strict[..]].concat(), "tests/objects/sizes.cpp");
}

#[test]
fn nothing_is_touched_beside_arrays_of_the_actual_sizes() {
    let Some(clang) = program(&["clang-22", "clang"]) else { return };
    let strict =
        ["-std=c99", "-pedantic", "-Weverything", "-Wno-padded", "-Wno-c++-compat", "-Wno-unsafe-buffer-usage"];
    let sanitizers = [
        "-Wno-declaration-after-statement",
        "-Wno-missing-noreturn",
        "-Wno-cast-qual",
        "-g",
        "-fsanitize=address,undefined",
    ];
    called(&here(), &[&[clang], &strict[..], &sanitizers[..]].concat(), "tests/objects/sizes.c");
}

#[test]
fn several_processors_are_asked_for_one_that_is_there() {
    let Some(gcc) = program(&["gcc"]) else { return };
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let of = |cpu: &str| Target::resolve(None, Some(cpu), None).expect("a known processor");
    called(&[of("sapphirerapids"), of("x86-64")], &[gcc, "-std=c99"], "tests/objects/sizes.c");
}

#[test]
fn headers_and_metadata_say_the_sizes() {
    let targets = here();
    let made = built(&targets);
    let face = &made.bundle.face;
    let text = header::header(face, &[&targets[0]]);
    for told in [
        "const float *p0; /* f32[n<=9,3]  0 */",
        "int64_t n; /* in, 1 to 9 */",
        "int64_t found; /* out, at most 100 */",
        "#define TFAOT_E_SIZE 2 ",
        "int m_mean(const m_mean_args *args, const m_mean_results *results, m_mean_sizes *sizes, const m_state *state, void *workspace,",
    ] {
        assert!(text.contains(told), "{told} in\n{text}");
    }
    let document: serde_json::Value =
        serde_json::from_str(&metadata::metadata(face, &[&targets[0]], &Default::default(), None)).expect("JSON");
    let entry = &document["functions"][1];
    assert_eq!(entry["sizes"][1]["most"], 100);
    assert_eq!(entry["results"][0]["axes"][0], 1);
    assert_eq!(entry["size_buckets"], serde_json::json!([[64], [100]]));
    let refused = fortran::module(face).expect_err("Fortran has no such functions").to_string();
    assert!(refused.contains("of fixed sizes"), "{refused}");
}

#[test]
fn bounds_that_gain_nothing_have_no_code() {
    let double = |n: u64| {
        format!(
            "HloModule double\nENTRY e {{\n x = f32[{n},4096] parameter(0)\n s = s32[] parameter(1)\n v = f32[2] parameter(2)\n\
             y = f32[{n},4096] add(x, x)\n ROOT o = (f32[{n},4096]) tuple(y)\n}}\n"
        )
    };
    let rows = vec![vec![Some(0), None]];
    let sizes = Sizes { all: vec![size("n", 1, 64, false)], args: rows.clone(), results: rows };
    let all = vec![("double".to_string(), function(sizes, &[32, 16, 8, 4, 2, 1], false, &double))];
    let functions = Functions { all, init: None };
    let compiled = compile::build_functions(functions, "m", "m.pb", &[(&here()[0]).into()], Launches::Direct, &mut [])
        .expect("it compiles");
    assert_eq!(compiled.bundle.face.entries[0].rungs, [[64]], "loops end with the rows of a call");
    assert_eq!(compiled.programs().len(), 1);
    let columns = &built(&here()).bundle.face.entries[2].rungs;
    assert_eq!(*columns, [[1], [4], [8]], "columns of a larger bound lie further apart");
}
