use crate::diag::Code;
use crate::hlo::{SourceContent, read, text, verify};
use std::path::Path;

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/jax").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The module of a file as HLO, verified, with what its results are called.
fn module(name: &str) -> (String, Vec<Option<String>>) {
    let source =
        read(&file(name).into()).and_then(SourceContent::require_known_sizes).unwrap_or_else(|e| panic!("{name}: {e}"));
    verify::verify(&source.module).unwrap_or_else(|e| panic!("{name}: {e}"));
    (text::print(&source.module), source.results)
}

#[test]
fn every_version_says_the_same() {
    let newest = module("version_1_17_0.mlirbc");
    for op in ["scatter(", "gather(", "sort(", "convolution(", "reduce(", "dot(", "exponential(", "tanh("] {
        assert!(newest.0.contains(op), "{op} in\n{}", newest.0);
    }
    for older in ["version_1_0_0.mlirbc", "version_1_7_0.mlirbc", "version_1_9_0.mlirbc"] {
        assert_eq!(module(older), newest, "{older}");
    }
}

#[test]
fn an_exported_function_is_its_module() {
    assert_eq!(module("mlp.jax"), module("mlp.mlirbc"));
    let (text, results) = module("mlp.jax");
    for name in ["params_b1", "params_w2", "x"] {
        assert!(text.contains(&format!("%{name} = f32[")), "{name} in\n{text}");
    }
    assert_eq!(results, [Some("logits".to_string())]);
}

#[test]
fn of_several_platforms_the_cpu_is_taken() {
    let (text, _) = module("platforms.jax");
    assert!(text.contains("s32[] constant(1)"), "{text}");
    let entry = text.split("ENTRY").nth(1).expect("an entry");
    assert_eq!(entry.matches(" parameter(").count(), 1, "{entry}");
}

/// Reads damaged bytes, which must end in a module or in an error that blames them.
fn survive(bytes: Vec<u8>) -> bool {
    match read(&bytes.into()).and_then(SourceContent::require_known_sizes) {
        Ok(source) => verify::verify(&source.module).is_ok(),
        Err(error) => {
            for d in error.into_diagnostics() {
                assert_ne!(d.code, Code::Internal, "{}", d.message);
            }
            false
        }
    }
}

#[test]
fn damaged_files_are_errors() {
    let names = ["version_1_0_0.mlirbc", "loops.mlirbc", "platforms.jax"];
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    for name in names {
        let whole = file(name);
        assert!(survive(whole.clone()), "{name}");
        // JAX's own fields may stand behind the module.
        for cut in (0..whole.len()).step_by(11) {
            let sound = survive(whole[..cut].to_vec());
            assert!(!sound || name.ends_with(".jax"), "the first {cut} bytes of {name}");
        }
        for _ in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..=next() % 3 {
                let at = next() % bytes.len();
                match next() % 4 {
                    0 => bytes[at] = next() as u8,
                    1 => bytes[at] ^= 1 << (next() % 8),
                    2 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, next() as u8),
                }
            }
            survive(bytes);
        }
    }
}

#[test]
fn what_is_meant_over_and_over_is_refused() {
    // Arrays of two of the one before, 60 deep: 2^60 elements from a few hundred bytes.
    let mut strings = Vec::new();
    for text in ["builtin", "module", "vhlo"] {
        strings.extend(text.as_bytes());
        strings.push(0);
    }
    let section = |kind: u8, data: Vec<u8>| [vec![kind], number(data.len()), data].concat();
    let mut entries = Vec::new();
    let mut offsets = [number(61), number(0), number(1), number(61)].concat();
    for i in 0..61 {
        // an array of none, then arrays of two of the entry before
        let entry = if i == 0 {
            [number(1), number(0)].concat()
        } else {
            [number(1), number(2), number(i - 1), number(i - 1)].concat()
        };
        offsets.extend(number(entry.len() << 1 | 1));
        entries.extend(entry);
    }
    // a dictionary of one entry, of the dialect `builtin`
    let operation = [number(0), vec![1], number(0), number(60)].concat();
    let bytes = [
        b"ML\xefR\x0dtest\0".to_vec(),
        section(0, [number(3), number(5), number(7), number(8), strings].concat()),
        section(
            1,
            [number(2), number(0), number(2 << 1), number(1), number(0), number(1), number(1 << 1 | 1)].concat(),
        ),
        section(2, entries),
        section(3, offsets),
        section(4, [number(1 << 1), operation].concat()),
    ]
    .concat();
    let error = read(&bytes.into()).expect_err("too much is meant").into_diagnostics().remove(0);
    assert!(matches!(error.code, Code::TooLarge | Code::BadEncoding), "{}", error.message);
    assert!(error.message.contains("much more is meant") || error.message.contains("nest deeper"), "{}", error.message);
}

/// A number as bytecode has it, below 2^14.
fn number(value: usize) -> Vec<u8> {
    assert!(value < 1 << 14);
    if value < 1 << 7 { vec![(value << 1 | 1) as u8] } else { ((value << 2 | 2) as u16).to_le_bytes().to_vec() }
}
