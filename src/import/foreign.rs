//! Recognition of files that users mistake for TensorFlow graphs, with the command that makes a graph of them.
use super::wire::{WireReader, WireValue};
use crate::diag::{Code, Diagnostic};
use bytes::Bytes;

/// A kind of file: a description, and what the user can do with it.
struct Kind {
    what: &'static str,
    cure: &'static str,
}

/// Magic bytes with their offset, and the kind of file that they identify.
#[rustfmt::skip]
const MARKS: &[(usize, &[u8], Kind)] = &[
    (0, b"\x89HDF\r\n\x1a\n", Kind { what: "an HDF5 file, such as a Keras model or its weights", cure: KERAS }),
    (4, b"TFL3", Kind { what: "a TensorFlow Lite model", cure: "compile what it was made from, or `tflite2onnx model.tflite model.onnx` and `onnx2tf -i model.onnx -o model`, and give the folder `model`" }),
    (0, b"\x93NUMPY", Kind { what: "one numpy array and no graph", cure: NUMPY }),
    (0, b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", Kind { what: "weights that PyTorch saved", cure: PYTORCH }),
    (257, b"ustar", Kind { what: "a tar archive", cure: "`mkdir model && tar xf FILE -C model`, and give the folder that has saved_model.pb" }),
    (0, b"version https://git-lfs.github.com/spec/", Kind { what: "a pointer of Git LFS and not the file that it stands for", cure: "`git lfs pull` in its repository" }),
    (0, b"model_checkpoint_path:", Kind { what: "the list of a folder's checkpoints, which hold weights and no graph", cure: CHECKPOINT }),
    (0, b"\xfd7zXZ\0", Kind { what: "compressed by xz", cure: "`xz -d FILE`" }),
    (0, b"BZh", Kind { what: "compressed by bzip2", cure: "`bzip2 -d FILE`" }),
    (0, b"\x28\xb5\x2f\xfd", Kind { what: "compressed by zstd", cure: "`zstd -d FILE`" }),
    (0, b"7z\xbc\xaf\x27\x1c", Kind { what: "a 7z archive", cure: "`7z x FILE`, and give the folder that has saved_model.pb" }),
];

const KERAS: &str = "`python -c \"import keras; keras.saving.load_model('FILE', compile=False).export('model')\"`, and give the folder `model`";
const NUMPY: &str =
    "`python -c \"import numpy as np; np.savez('inputs.npz', NAME=np.load('FILE'))\"` makes what --inputs takes";
const PYTORCH: &str = "`torch.onnx.export(model, (example,), 'model.onnx')` in Python, then `onnx2tf -i model.onnx -o model`, and give the folder `model`";
const CHECKPOINT: &str = "`tf.saved_model.save(model, 'model')` where the model is made, and give the folder `model`";
const ONNX: &str = "`onnx2tf -i FILE -o model`, and give the folder `model`";
const UNZIP: &str = "`unzip FILE -d model`, and give the folder that has saved_model.pb";

/// Magic number at the end of a LevelDB table, which the index of a checkpoint is.
const TABLE_END: &[u8] = b"\x57\xfb\x80\x8b\x24\x75\x47\xdb";

/// A diagnostic for a file of a known foreign format, which `FileFormat` detection would misjudge; `None` for all other files.
pub fn diagnose_foreign_file(bytes: &Bytes) -> Option<Diagnostic> {
    let marked = MARKS.iter().find(|(at, mark, _)| bytes.get(*at..).is_some_and(|b| b.starts_with(mark)));
    let kind = match marked {
        Some((_, _, kind)) => Kind { ..*kind },
        None if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") => zipped(bytes),
        None => other(bytes)?,
    };
    Some(Diagnostic::new(Code::UnknownFormat, format!("this is {}", kind.what)).help(kind.cure))
}

/// Recognizes kinds that have no magic bytes at a fixed offset.
fn other(bytes: &Bytes) -> Option<Kind> {
    if is_page(bytes) {
        return Some(Kind {
            what: "an HTML page, saved in the place of a file",
            cure: "`curl -fL -o FILE URL` with the address of the file itself, which on GitHub and Hugging Face has `raw` or `resolve` in it",
        });
    }
    if is_onnx(bytes) {
        return Some(Kind { what: "an ONNX model", cure: ONNX });
    }
    if bytes.ends_with(TABLE_END) {
        return Some(Kind { what: "the index of a checkpoint, which holds weights and no graph", cure: CHECKPOINT });
    }
    if is_safetensors(bytes) {
        return Some(Kind { what: "a safetensors file, which holds weights and no graph", cure: PYTORCH });
    }
    let pickled = matches!(bytes[..], [0x80, 2..=5, .., b'.']);
    pickled.then_some(Kind { what: "a Python pickle", cure: CHECKPOINT })
}

fn is_page(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let begins = |with: &[u8]| bytes.get(..with.len()).is_some_and(|b| b.eq_ignore_ascii_case(with));
    begins(b"<!doctype html") || begins(b"<html") || begins(b"<head")
}

/// Whether bytes are an ONNX ModelProto. Like a SavedModel it begins with a number, but a SavedModel has only graphs (field 2) behind it,
/// whereas a ModelProto has its graph in field 7 and op set versions in field 8.
fn is_onnx(bytes: &Bytes) -> bool {
    let mut reader = WireReader::new(bytes, "file");
    let (mut version, mut graph, mut ops) = (false, false, false);
    while let Ok(Some(field)) = reader.next() {
        match (field.number, field.value) {
            (1, WireValue::Varint(_)) => version = true,
            (1, _) => return false,
            (7, WireValue::Bytes(_)) => graph = true,
            (8, WireValue::Bytes(_)) => ops = true,
            _ => {}
        }
    }
    version && (graph || ops)
}

/// Whether bytes are in safetensors format: eight bytes of length, then that much JSON.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return false };
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    rest.get(..length).is_some_and(|head| head.starts_with(b"{\"") && head.trim_ascii_end().ends_with(b"}"))
}

/// The kind of a zip archive, judged by the file names in it.
fn zipped(bytes: &[u8]) -> Kind {
    let Ok(archive) = zip::ZipArchive::new(std::io::Cursor::new(bytes)) else {
        return Kind { what: "a damaged zip archive", cure: "fetch it again" };
    };
    let names: Vec<&str> = archive.file_names().collect();
    let ends = |end: &str| names.iter().any(|n| n.rsplit('/').next() == Some(end));
    if ends("saved_model.pb") || ends("saved_model.pbtxt") {
        Kind { what: "a zip archive of a SavedModel", cure: UNZIP }
    } else if ends("config.json") && (ends("model.weights.h5") || ends("metadata.json")) {
        Kind { what: "a Keras model", cure: KERAS }
    } else if ends("data.pkl") {
        Kind { what: "a PyTorch model", cure: PYTORCH }
    } else if !names.is_empty() && names.iter().all(|n| n.ends_with(".npy")) {
        Kind { what: "arrays of numpy and no graph", cure: "they go with --inputs or --expect, behind the graph" }
    } else {
        Kind { what: "a zip archive", cure: UNZIP }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn archive(names: &[&str]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let stored = zip::write::FileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for name in names {
            zip.start_file(*name, stored).expect("a name");
            zip.write_all(b"x").expect("memory");
        }
        zip.finish().expect("memory").into_inner()
    }

    fn told(bytes: impl Into<Vec<u8>>) -> (String, String) {
        let found = diagnose_foreign_file(&Bytes::from(bytes.into())).expect("it is recognised");
        (found.message, found.help.expect("it says what to do"))
    }

    #[test]
    fn each_kind_is_told_with_a_command() {
        let at = |place: usize, mark: &[u8]| [&vec![0; place][..], mark, &[0; 16]].concat();
        // ir_version 8, producer_name "pytorch", graph, opset_import
        let onnx = b"\x08\x08\x12\x07pytorch\x3a\x02\x0a\x00\x42\x02\x10\x11".to_vec();
        let safetensors = b"\x0a\0\0\0\0\0\0\0{\"a\":1234}data".to_vec();
        let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
        let cases: &[(Vec<u8>, &str, &str)] = &[
            (at(0, b"\x89HDF\r\n\x1a\n"), "HDF5", "load_model"),
            (at(4, b"TFL3"), "TensorFlow Lite", "onnx2tf"),
            (onnx, "ONNX", "onnx2tf"),
            (at(0, b"\x93NUMPY\x01\0"), "numpy", "np.savez"),
            (at(257, b"ustar"), "tar archive", "tar xf"),
            (lfs.into(), "Git LFS", "git lfs pull"),
            ("\n <!DOCTYPE html>\n<html lang=\"en\">".into(), "HTML page", "curl"),
            ("<HTML><BODY>404</BODY></HTML>".into(), "HTML page", "curl"),
            (archive(&["m/saved_model.pb", "m/variables/variables.index"]), "of a SavedModel", "unzip"),
            (archive(&["metadata.json", "config.json", "model.weights.h5"]), "Keras model", "load_model"),
            (archive(&["net/data.pkl", "net/version", "net/data/0"]), "PyTorch", "torch.onnx.export"),
            (archive(&["x.npy", "y.npy"]), "arrays of numpy", "--inputs"),
            (archive(&["readme.txt"]), "a zip archive", "unzip"),
            (b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.".to_vec(), "PyTorch", "torch.onnx.export"),
            (b"\x80\x04K\x01.".to_vec(), "pickle", "saved_model.save"),
            (safetensors, "safetensors", "torch.onnx.export"),
            ([&[0; 40][..], TABLE_END].concat(), "checkpoint", "saved_model.save"),
        ];
        for (bytes, what, command) in cases {
            let (message, help) = told(bytes.clone());
            assert!(message.contains(what), "{message} for {what}");
            assert!(help.contains(command), "{help} for {what}");
        }
    }

    #[test]
    fn what_is_ours_is_left_alone() {
        for name in ["graphs/mlp/graph.pb", "graphs/conv_net/graph.pb", "saved_model/saved_model.pb"] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
            let bytes = Bytes::from(std::fs::read(path).expect("it is in the repository"));
            assert_eq!(diagnose_foreign_file(&bytes), None, "{name}");
        }
        for text in
            ["node { name: \"a\" op: \"Const\" }", "HloModule m", "{\"modelTopology\":{}}", "versions { producer: 9 }"]
        {
            assert_eq!(diagnose_foreign_file(&Bytes::from(text)), None, "{text}");
        }
    }
}
