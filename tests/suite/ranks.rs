//! Models that several ranks run: collectives against XLA's own answers, and the two communicators that are shipped, with ranks that
//! fail, come with another size, do not come, or are killed.
use crate::common::{npz, path, program, ran, said, succeed, tfaot, tolerance::departure};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The names of the cases of `tests/ranks/xla/`, with their files.
fn cases() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(path("tests/ranks/xla")).expect("the folder is in the repository").flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if let Some((name, "mlir" | "jax" | "pb")) = file.rsplit_once('.') {
            all.push((name.to_string(), entry.path().display().to_string()));
        }
    }
    all.sort();
    all
}

/// The HLO of a graph whose results are the nodes `out0`, `out1` and so on.
fn module_of_graph(file: &str, name: &str, folder: &Path) -> String {
    let count = npz(&path("tests/ranks/xla").join(format!("{name}.out.npz"))).len() / 4;
    let out = folder.display().to_string();
    let fetches: Vec<String> = (0..count).map(|k| format!("out{k}")).collect();
    let mut args = vec!["compile", file, "-q", "-o", &out, "--name", name, "--emit", "hlo", "--feed", "x=f32[4,6]"];
    args.extend(fetches.iter().flat_map(|fetch| ["--fetch", fetch]));
    succeed(&args);
    folder.join(format!("{name}.hlo")).display().to_string()
}

/// Random groups, channels, dimensions and types of each collective, on replicas, partitions and both, two files of `shard_map`, and
/// TensorFlow's collective ops: `tools/make_collective_cases` recorded what XLA and TensorFlow make of them on four devices. The
/// interpreter and native code must agree beside.
#[test]
fn collectives_are_those_of_xla() {
    let all = cases();
    assert_eq!(all.len(), 42, "six collectives six times, two files of JAX, and four graphs");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("out.npz");
    for (name, mut file) in all {
        if file.ends_with(".pb") {
            file = module_of_graph(&file, &name, folder.path());
        }
        let given = path("tests/ranks/xla").join(format!("{name}.in.npz"));
        let [given, written] = [&given, &out].map(|p| p.display().to_string());
        let engines = ["--replicas", "4", "--engine", "native,interpreter"];
        succeed(&[&["hlo", "run", &file, "--inputs", &given, "--outputs", &written], &engines[..]].concat());
        let (got, want) = (npz(&out), npz(&path("tests/ranks/xla").join(format!("{name}.out.npz"))));
        assert!(got.keys().eq(want.keys()), "{name}: other results");
        for (key, want) in &want {
            assert_eq!(departure(&got[key], want), None, "{name}: {key}");
        }
    }
}

/// A collective in one branch of two, which some ranks take and others don't: they wait for each other, and are told so.
#[test]
fn ranks_that_wait_in_vain_are_told() {
    let text = "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\
                with {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] all-reduce(x), to_apply=sum\n}\n\
                without {\n  ROOT x = f32[4] parameter(0)\n}\n\
                ENTRY e {\n  x = f32[4] parameter(0)\n  i = u32[] replica-id()\n  n = s32[] convert(i)\n\
                ROOT c = f32[4] conditional(n, x, x), branch_computations={with, without}\n}\n";
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("m.hlo").display().to_string();
    std::fs::write(&file, text).expect("written");
    for engine in ["interpreter", "native"] {
        let output = tfaot(&["hlo", "run", "--replicas", "3", "--engine", engine, &file]);
        let said = said(&output);
        assert!(!output.status.success() && said.contains("TFA0207"), "{engine}: {said}");
    }
    // as one device it runs, and another number than the module's is refused
    succeed(&["hlo", "run", &file]);
    std::fs::write(&file, text.replace("HloModule m", "HloModule m, replica_count=2")).expect("written");
    let output = tfaot(&["hlo", "run", "--replicas", "3", &file]);
    assert!(!output.status.success() && said(&output).contains("TFA0205"), "{}", said(&output));
}

/// Compiles a module with both communicators beside it.
fn compile(file: &str, name: &str, folder: &Path, more: &[&str]) {
    let out = folder.display().to_string();
    let emit = ["compile", file, "-o", &out, "--name", name, "--emit", "obj,header,threads,mpi"];
    succeed(&[&emit[..], more].concat());
}

/// Two models of one text, for six numbers and for ten, and the program of `failures.c` with them.
fn failures(folder: &Path, cc: &str, flags: &[&str]) {
    let text = std::fs::read_to_string(path("tests/ranks/step.hlo")).expect("it is there");
    let wide = folder.join("wide.hlo");
    std::fs::write(&wide, text.replace("f32[6]", "f32[10]")).expect("written");
    compile(&path("tests/ranks/step.hlo").display().to_string(), "step", folder, &["--cpu", "x86-64,x86-64-v3"]);
    compile(&wide.display().to_string(), "wide", folder, &[]);
    let common = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-I."];
    let mut build = Command::new(cc);
    build.current_dir(folder).args(common).args(flags).arg(path("tests/ranks/failures.c"));
    ran(build.args(["step.o", "wide.o", "-lpthread", "-o", "program"]));
}

/// The codes that ranks print, by rank.
fn codes(text: &str) -> Vec<(u32, i32)> {
    let mut all: Vec<(u32, i32)> = text
        .lines()
        .filter_map(|line| {
            let (rank, code) = line.strip_prefix("rank ")?.split_once(": ")?;
            Some((rank.parse().ok()?, code.trim().parse().ok()?))
        })
        .collect();
    all.sort_unstable();
    all
}

/// What each rank ends with: 5 is `TFAOT_E_CALL`, 6 `TFAOT_E_RANKS`.
const ENDS: &[(&str, [i32; 4])] =
    &[("well", [0, 0, 0, 0]), ("fail", [6, 6, 5, 6]), ("size", [6, 6, 6, 6]), ("stay", [6, 6, 0, 6])];

#[test]
fn threads_end_with_codes() {
    let Some(cc) = program(&["cc"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    failures(folder.path(), cc, &["-fsanitize=address,undefined"]);
    for (what, want) in ENDS {
        let output = Command::new(folder.path().join("program")).arg(what).output().expect("it starts");
        let text = said(&output);
        assert!(output.status.success(), "{what}: {text}");
        assert_eq!(codes(&text), (0..).zip(*want).collect::<Vec<_>>(), "{what}: {text}");
        assert!(text.contains("three: 6, none: 6"), "{text}");
    }
}

/// `mpirun` for four processes on any machine.
fn mpirun(more: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", "4"]).args(more);
    command
}

#[test]
fn processes_end_with_codes() {
    let Some(cc) = program(&["mpicc"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    failures(folder.path(), cc, &["-DWITH_MPI"]);
    for (what, want) in ENDS {
        let start = Instant::now();
        let output = mpirun(&["./program", what]).current_dir(folder.path()).output().expect("it starts");
        let text = said(&output);
        assert_eq!(output.status.success(), *what == "well", "{what}: {text}");
        assert_eq!(codes(&text), (0..).zip(*want).collect::<Vec<_>>(), "{what}: {text}");
        assert!(start.elapsed() < Duration::from_secs(30), "{what} took {:?}", start.elapsed());
    }
    // a rank that is killed: the others end by mpirun, or, where it lets them live, with a code
    for (more, want) in [(&[][..], vec![]), (&["--enable-recovery"][..], vec![(0, 6), (1, 6), (3, 6)])] {
        let start = Instant::now();
        let args = [more, &["./program", "kill"]].concat();
        let output = mpirun(&args).current_dir(folder.path()).output().expect("it starts");
        let text = said(&output);
        // with recovery Open MPI's own status is 0, whatever the ranks ended with
        assert!(!output.status.success() || !more.is_empty(), "{text}");
        assert_eq!(codes(&text), want, "{text}");
        assert!(start.elapsed() < Duration::from_secs(30), "it took {:?}", start.elapsed());
    }
}

/// The loss and all weights that a program of the example prints.
fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().skip(1).map(|word| word.parse().unwrap_or_else(|_| panic!("no number: {word}"))).collect()
}

/// Twenty steps of the example: four ranks, by threads and by processes, with a quarter of the batch each are one with all of it.
#[test]
fn training_by_four_is_training_by_one() {
    let Some(cc) = program(&["cc"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let example = path("examples/replicas");
    for name in ["alone", "shared"] {
        compile(&example.join(format!("{name}.jax")).display().to_string(), name, folder.path(), &[]);
    }
    let built = |cc: &str, source: &str, object: &str| {
        let common = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-I."];
        let mut build = Command::new(cc);
        build.current_dir(folder.path()).args(common).arg(example.join(format!("{source}.c"))).arg(object);
        ran(build.args(["-lm", "-lpthread", "-o", source]));
    };
    let printed = |command: &mut Command| {
        let output = command.current_dir(folder.path()).output().expect("it starts");
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    built(cc, "alone", "alone.o");
    built(cc, "threads", "shared.o");
    let alone = numbers(&printed(&mut Command::new(folder.path().join("alone"))));
    let threads = printed(&mut Command::new(folder.path().join("threads")));
    let worst = alone.iter().zip(numbers(&threads)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert_eq!(alone.len(), 388);
    assert!(worst < 1e-5, "they differ by {worst}");
    // other times, the same bits
    for _ in 0..5 {
        assert_eq!(printed(&mut Command::new(folder.path().join("threads"))), threads);
    }
    let Some(mpicc) = program(&["mpicc"]) else { return };
    built(mpicc, "mpi", "shared.o");
    assert_eq!(printed(&mut mpirun(&["./mpi"])), threads);
}
