//! Models with variables as a C or C++ programmer meets them: two functions over one state in one object, against the interpreter,
//! under sanitizers, and from two threads that only read.
use crate::common::objects::write;
use crate::common::{path, program, ran, random::Random, tolerance::departure_beyond};
use std::process::Command;
use tfaot::codegen::Launches;
use tfaot::compile::{self, Compiled, Functions};
use tfaot::lower::Lowered;
use tfaot::package::header;
use tfaot::target::{CodeRequest, Target};
use tfaot::tensor::{DType, Tensor};

const ADD: &str = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n";

/// A dense layer, and a step with momentum down the gradient of the squared error; it counts the steps.
fn functions() -> Functions {
    let train = format!(
        "HloModule train\n{ADD}ENTRY e {{\n x = f32[6,20] parameter(0)\n t = f32[6,9] parameter(1)\n\
         w = f32[20,9] parameter(2)\n b = f32[9] parameter(3)\n n = s64[] parameter(4)\n m = f32[20,9] parameter(5)\n\
         p = f32[6,9] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n\
         bs = f32[6,9] broadcast(b), dimensions={{1}}\n y = f32[6,9] add(p, bs)\n d = f32[6,9] subtract(y, t)\n\
         q = f32[6,9] multiply(d, d)\n zero = f32[] constant(0)\n\
         loss = f32[] reduce(q, zero), dimensions={{0,1}}, to_apply=add\n\
         g = f32[20,9] dot(x, d), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}\n\
         gb = f32[9] reduce(d, zero), dimensions={{0}}, to_apply=add\n\
         k = f32[] constant(0.5)\n ks = f32[20,9] broadcast(k), dimensions={{}}\n old = f32[20,9] multiply(ks, m)\n\
         m2 = f32[20,9] add(old, g)\n r = f32[] constant(0.005)\n rs = f32[20,9] broadcast(r), dimensions={{}}\n\
         step = f32[20,9] multiply(rs, m2)\n w2 = f32[20,9] subtract(w, step)\n\
         rb = f32[9] broadcast(r), dimensions={{}}\n sb = f32[9] multiply(rb, gb)\n b2 = f32[9] subtract(b, sb)\n\
         one = s64[] constant(1)\n n2 = s64[] add(n, one)\n\
         ROOT o = (f32[], f32[20,9], f32[9], s64[], f32[20,9]) tuple(loss, w2, b2, n2, m2)\n}}\n"
    );
    let predict = "HloModule predict\nENTRY e {\n x = f32[6,20] parameter(0)\n\
         w = f32[20,9] parameter(1)\n b = f32[9] parameter(2)\n n = s64[] parameter(3)\n m = f32[20,9] parameter(4)\n\
         p = f32[6,9] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n\
         bs = f32[6,9] broadcast(b), dimensions={1}\n y = f32[6,9] add(p, bs)\n ROOT o = (f32[6,9]) tuple(y)\n}\n";
    let mut random = Random::new(5);
    let initial = [
        Some(random.tensor(DType::F32, &[20, 9])),
        Some(random.tensor(DType::F32, &[9])),
        Some(Tensor::of(&[], &[7i64])),
        None,
    ];
    let with = |hlo: &str, args, changed: [bool; 4]| {
        let mut lowered = crate::common::state::lowered(hlo, args, &changed);
        lowered.state.iter_mut().zip(&initial).for_each(|(v, value)| v.initial.clone_from(value));
        lowered
    };
    let all =
        vec![("train".to_string(), with(&train, 2, [true; 4])), ("predict".to_string(), with(predict, 1, [false; 4]))];
    Functions { all, init: None }
}

fn built(functions: Functions, targets: &[Target]) -> Compiled {
    let requests: Vec<CodeRequest> = targets.iter().map(CodeRequest::from).collect();
    compile::build_functions(functions, "m", "m.pb", &requests, Launches::Direct, &mut []).expect("it compiles")
}

fn here() -> Vec<Target> {
    vec![Target::resolve(None, None, None).expect("this machine")]
}

/// What the interpreter has behind so many steps: what `predict` says, and the state.
fn expected(all: &[(String, Lowered)], args: &[Tensor], steps: usize) -> (Tensor, Vec<Tensor>) {
    let (train, predict) = (&all[0].1, &all[1].1);
    let zeros = |v: &tfaot::lower::StateVariable| {
        Tensor::new(v.info.dtype, v.info.dims.clone(), vec![0; v.info.bytes() as usize])
    };
    let mut values: Vec<Tensor> = train.state.iter().map(|v| v.initial.clone().unwrap_or_else(|| zeros(v))).collect();
    for _ in 0..steps {
        values = crate::common::state::interpreted(train, args, &values).1;
    }
    (crate::common::state::interpreted(predict, &args[..1], &values).0.remove(0), values)
}

/// Trains in C, built by `compiler`, and compares.
fn trained(compiler: &[&str], targets: &[Target], steps: usize) {
    let functions = functions();
    let mut random = Random::new(9);
    let args: Vec<Tensor> = functions.all[0].1.args.iter().map(|a| random.tensor(a.dtype, &a.dims)).collect();
    let (y, values) = expected(&functions.all, &args, steps);
    let made = built(functions, targets);
    let folder = tempfile::tempdir().expect("a scratch folder");
    write(&made, folder.path());
    std::fs::write(folder.path().join("x"), &args[0].bytes).expect("written");
    std::fs::write(folder.path().join("t"), &args[1].bytes).expect("written");
    let mut build = Command::new(compiler[0]);
    build.args(&compiler[1..]).args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-DM_X_BYTES=480", "-DM_Y_BYTES=216"]);
    build.arg("-I").arg(folder.path()).arg(path("tests/objects/state.c"));
    if compiler.contains(&"c++") {
        build.args(["-x", "none"]);
    }
    let driver = folder.path().join("driver");
    ran(build.arg(folder.path().join("m.o")).arg("-o").arg(&driver));
    ran(Command::new(&driver).arg(folder.path()).arg(steps.to_string()));
    let read = |name: &str| std::fs::read(folder.path().join(name)).expect("the driver wrote it");
    let got = Tensor::new(y.dtype, y.dims.clone(), read("y"));
    assert_eq!(departure_beyond(&got, &y, 1e-4), None, "y by {compiler:?}");
    let have = crate::common::state::unpacked(&made.bundle.face.state, &read("state"));
    for (i, (g, w)) in have.iter().zip(&values).enumerate() {
        assert_eq!(departure_beyond(g, w, 1e-4), None, "variable {i} by {compiler:?}");
    }
}

#[test]
fn a_layer_is_trained_in_c_and_cpp() {
    let (Some(gcc), Some(cpp)) = (program(&["gcc"]), program(&["g++"])) else { return };
    trained(&[gcc, "-std=c99"], &here(), 30);
    trained(&[cpp, "-std=c++17", "-x", "c++"], &here(), 3);
}

#[test]
fn a_thousand_steps_under_sanitizers() {
    let Some(clang) = program(&["clang-22", "clang"]) else { return };
    trained(&[clang, "-std=c99", "-g", "-fsanitize=address,undefined"], &here(), 1000);
    trained(&[clang, "-std=c99", "-g", "-fsanitize=thread", "-DTHREADS", "-pthread"], &here(), 1000);
}

#[test]
fn several_processors_share_state_and_constants() {
    let Some(gcc) = program(&["gcc"]) else { return };
    let of = |cpu: &str| Target::resolve(None, Some(cpu), None).expect("a known processor");
    trained(&[gcc, "-std=c99"], &[of("x86-64-v2"), of("x86-64-v3")], 30);
    let bytes = |targets: &[Target]| built(functions(), targets).bundle.face.weights_bytes;
    assert!(bytes(&[of("x86-64-v2"), of("x86-64-v3")]) < 2 * bytes(&[of("x86-64-v3")]));
}

#[test]
fn classes_share_a_state_or_have_their_own() {
    let Some(cpp) = program(&["g++"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    write(&built(functions(), &here()), folder.path());
    let built = folder.path().join("classes");
    let mut build = Command::new(cpp);
    build.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-I"]).arg(folder.path());
    ran(build.arg(path("tests/objects/state.cpp")).arg(folder.path().join("m.o")).arg("-o").arg(&built));
    ran(&mut Command::new(&built));
}

#[test]
fn one_function_with_variables_is_called_run() {
    let mut functions = functions();
    functions.all.truncate(1);
    let made = built(functions, &here());
    let targets: Vec<&Target> = made.bundle.variants.iter().map(|v| &v.1).collect();
    let text = header::header(&made.bundle.face, &targets);
    assert!(
        text.contains("int m_run(const m_args *args, const m_results *results, m_state *state, void *workspace,"),
        "{text}"
    );
    assert!(text.contains("  int64_t v2; "), "{text}");
}

#[test]
fn a_failing_call_changes_nothing() {
    // a processor that this machine is not: the call answers TFAOT_E_CPU
    let Some(gcc) = program(&["gcc"]) else { return };
    let Ok(other) = Target::resolve(None, Some("x86-64-v4"), Some("+amx-fp16,+amx-tile,+avx10.2")) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    write(&built(functions(), &[other]), folder.path());
    let source = "#include \"m.h\"\n#include <string.h>\nstatic m_state a, b; static float x[120], t[54], l = 3; static char w[1 << 20];\n\
        int main(void) { const m_train_args in = {x, t}; const m_train_results out = {&l}; m_init(&a); b = a;\n\
        if (m_supported()) return 0;\n\
        return m_train(&in, &out, &a, w, 0) == TFAOT_E_CPU && !memcmp(&a, &b, sizeof a) && l == 3 ? 0 : 1; }\n";
    std::fs::write(folder.path().join("f.c"), source).expect("written");
    let built = folder.path().join("f");
    ran(Command::new(gcc).current_dir(folder.path()).args(["f.c", "m.o", "-o"]).arg(&built));
    ran(&mut Command::new(&built));
}
