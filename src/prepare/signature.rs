//! Selection of a signature, and translation of its names to TensorFlow's.
//!
//! Users write the names of the signature or TensorFlow's. They are made TensorFlow's once, before anything else, and what
//! the signature calls a tensor is looked up again for what users read.
use super::Request;
use super::names::NodesByName;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, Program, Signature};

/// Prefix of the signatures that `tf.saved_model.save` writes for itself.
const INTERNAL: &str = "__saved_model";

/// The signature to use, if any: the one that is asked for, `serving_default`, or the only one. Those that name missing
/// tensors are passed over unless the user asked for them.
///
/// Errors: `BadOption` where there is none of that name; `WhichSignature` where TensorFlow 2 saved several, or none, and no fetch
/// tells.
pub fn choose<'a>(program: &'a Program, names: &NodesByName, request: &Request) -> Result<Option<&'a Signature>> {
    let all = &program.signatures;
    match &request.signatures[..] {
        [] => {}
        [wanted] => return named(program, names, wanted).map(Some),
        several => {
            let told = format!("one signature can be taken here, and not {}", several.join(", "));
            return Err(Error::user(Code::BadOption, told));
        }
    }
    let usable: Vec<&Signature> = usable(program, names).collect();
    match (&usable[..], usable.iter().copied().find(|s| s.name == "serving_default")) {
        (_, Some(default)) => Ok(Some(default)),
        ([one], None) => Ok(Some(*one)),
        (_, None) if !request.fetches.is_empty() => Ok(None),
        ([], None) if all.iter().any(|s| s.name.starts_with(INTERNAL)) => Err(none()),
        ([], None) => Ok(None),
        (several, None) => Err(ask(several)),
    }
}

/// The signature called `wanted`. Errors: `BadOption` where there is none.
fn named<'a>(program: &'a Program, names: &NodesByName, wanted: &str) -> Result<&'a Signature> {
    let found = program.signatures.iter().find(|s| s.name == wanted);
    found.ok_or_else(|| {
        let known: Vec<&str> = usable(program, names).map(|s| s.name.as_str()).collect();
        let known = match known[..] {
            [] => "the model has none".to_string(),
            _ => format!("there are {}", known.join(", ")),
        };
        Diagnostic::new(Code::BadOption, format!("there is no signature `{wanted}`")).help(known).into()
    })
}

/// The signatures that `request` takes; none where it takes the graph as it is. Errors: those of [`choose`].
pub fn choose_all<'a>(program: &'a Program, names: &NodesByName, request: &Request) -> Result<Vec<&'a Signature>> {
    match &request.signatures[..] {
        [] => Ok(choose(program, names, request)?.into_iter().collect()),
        [all] if all == "all" && !program.signatures.iter().any(|s| s.name == "all") => {
            Ok(usable(program, names).collect())
        }
        several => several.iter().map(|wanted| named(program, names, wanted)).collect(),
    }
}

/// The signatures of which all tensors are there, but for what TensorFlow writes for itself.
pub fn usable<'a>(program: &'a Program, names: &NodesByName) -> impl Iterator<Item = &'a Signature> {
    program.signatures.iter().filter(|s| {
        let mut tensors = s.inputs.iter().chain(&s.outputs);
        let there = tensors.all(|(_, tensor)| names.endpoint("tensor", tensor).is_ok());
        there && (!s.outputs.is_empty() || s.runs.is_some()) && !s.name.starts_with(INTERNAL)
    })
}

/// TensorFlow 2 saved it, so that what no node uses is its saver.
fn none() -> Error {
    Diagnostic::new(Code::WhichSignature, "the model has no signature")
        .help("save it with signatures (`tf.saved_model.save(model, folder, signatures=...)`), or name tensors with --fetch")
        .into()
}

fn ask(several: &[&Signature]) -> Error {
    let told = format!("the model has {} signatures, and none of them is `serving_default`", several.len());
    let listed = |pairs: &[(String, String)]| pairs.iter().map(|p| p.0.as_str()).collect::<Vec<_>>().join(", ");
    let mut question = Diagnostic::new(Code::WhichSignature, told)
        .help(format!("choose one, for example with --signature {}", several[0].name));
    for s in several {
        question = question.note(format!("{}({}) -> {}", s.name, listed(&s.inputs), listed(&s.outputs)));
    }
    question.into()
}

/// The request with the signature's names replaced by TensorFlow's.
pub fn in_tensor_names(request: &Request, signature: Option<&Signature>) -> Request {
    let mut request = request.clone();
    let Some(signature) = signature else { return request };
    let tensor = |pairs: &[(String, String)], name: &str| {
        pairs.iter().find(|(key, _)| key == name).map_or_else(|| name.to_string(), |(_, tensor)| tensor.clone())
    };
    for feed in &mut request.feeds {
        feed.name = tensor(&signature.inputs, &feed.name);
    }
    for fetch in &mut request.fetches {
        *fetch = tensor(&signature.outputs, fetch);
    }
    for (name, _) in &mut request.dims {
        let at = name.rfind('[').unwrap_or(name.len());
        *name = tensor(&signature.inputs, &name[..at]) + &name[at..];
    }
    request
}

/// The name that one of a signature's `pairs` gives to the tensor `at`.
pub fn called(pairs: &[(String, String)], names: &NodesByName, at: Endpoint) -> Option<String> {
    let found = pairs.iter().find(|(_, tensor)| names.endpoint("tensor", tensor).is_ok_and(|e| e == at));
    found.map(|(key, _)| key.clone())
}

/// The error of a name that is not there, with the names that are: of `signature`, or of the one that has it.
pub fn with_names(
    diagnostic: Diagnostic,
    name: &str,
    program: &Program,
    signature: Option<&Signature>,
    side: fn(&Signature) -> &[(String, String)],
) -> Diagnostic {
    let keys = |s: &Signature| side(s).iter().map(|(key, _)| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    match signature {
        Some(s) if !side(s).is_empty() => diagnostic.note(format!("the signature `{}` has {}", s.name, keys(s))),
        Some(_) => diagnostic,
        None => match program.signatures.iter().find(|s| side(s).iter().any(|(key, _)| key == name)) {
            Some(s) => diagnostic.help(format!("the signature `{0}` has it: --signature {0}", s.name)),
            None => diagnostic,
        },
    }
}
