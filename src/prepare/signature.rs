//! Selection of a signature, and translation of its names to TensorFlow's tensor names.
//!
//! Users may write either names. Requests are translated to tensor names first; the signature's names are looked up again for messages and
//! for the names of arguments and results.
use super::Request;
use super::names::NodesByName;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, Program, Signature};

/// Prefix of the signatures that `tf.saved_model.save` writes for itself.
const INTERNAL: &str = "__saved_model";

/// Signature to use, if any: the requested one, else `serving_default`, else the only one. Signatures that name missing tensors are
/// ignored unless the user requests them.
///
/// Errors: `BadOption` for an unknown signature; `WhichSignature` if TensorFlow 2 saved several signatures or none, and the request has no
/// fetches.
pub fn choose_signature<'a>(
    program: &'a Program,
    names: &NodesByName,
    request: &Request,
) -> Result<Option<&'a Signature>> {
    let all = &program.signatures;
    match &request.signatures[..] {
        [] => {}
        [wanted] => return find_signature(program, names, wanted).map(Some),
        several => {
            let told = format!("one signature can be taken here, and not {}", several.join(", "));
            return Err(Error::user(Code::BadOption, told));
        }
    }
    let usable: Vec<&Signature> = usable_signatures(program, names).collect();
    match (&usable[..], usable.iter().copied().find(|s| s.name == "serving_default")) {
        (_, Some(default)) => Ok(Some(default)),
        ([one], None) => Ok(Some(*one)),
        (_, None) if !request.fetches.is_empty() => Ok(None),
        ([], None) if all.iter().any(|s| s.name.starts_with(INTERNAL)) => Err(no_signature_error()),
        ([], None) => Ok(None),
        (several, None) => Err(ambiguous_signature_error(several)),
    }
}

/// Signature with the name `wanted`. Errors: `BadOption` if there is none.
fn find_signature<'a>(program: &'a Program, names: &NodesByName, wanted: &str) -> Result<&'a Signature> {
    let found = program.signatures.iter().find(|s| s.name == wanted);
    found.ok_or_else(|| {
        let known: Vec<&str> = usable_signatures(program, names).map(|s| s.name.as_str()).collect();
        let known = match known[..] {
            [] => "the model has none".to_string(),
            _ => format!("there are {}", known.join(", ")),
        };
        Diagnostic::new(Code::BadOption, format!("there is no signature `{wanted}`")).help(known).into()
    })
}

/// Signatures that `request` chooses; none if it takes feeds and fetches of the graph. Errors: those of [`choose_signature`].
pub fn choose_signatures<'a>(
    program: &'a Program,
    names: &NodesByName,
    request: &Request,
) -> Result<Vec<&'a Signature>> {
    match &request.signatures[..] {
        [] => Ok(choose_signature(program, names, request)?.into_iter().collect()),
        [all] if all == "all" && !program.signatures.iter().any(|s| s.name == "all") => {
            Ok(usable_signatures(program, names).collect())
        }
        several => several.iter().map(|wanted| find_signature(program, names, wanted)).collect(),
    }
}

/// Signatures all of whose tensors exist, without TensorFlow's internal ones.
pub fn usable_signatures<'a>(program: &'a Program, names: &NodesByName) -> impl Iterator<Item = &'a Signature> {
    program.signatures.iter().filter(|s| {
        let mut tensors = s.inputs.iter().chain(&s.outputs);
        let there = tensors.all(|(_, tensor)| names.endpoint("tensor", tensor).is_ok());
        there && (!s.outputs.is_empty() || s.runs.is_some()) && !s.name.starts_with(INTERNAL)
    })
}

/// Error for a model of TensorFlow 2 without signatures, whose unused outputs are those of its saver.
fn no_signature_error() -> Error {
    Diagnostic::new(Code::WhichSignature, "the model has no signature")
        .help("save it with signatures (`tf.saved_model.save(model, folder, signatures=...)`), or name tensors with --fetch")
        .into()
}

fn ambiguous_signature_error(several: &[&Signature]) -> Error {
    let told = format!("the model has {} signatures, and none of them is `serving_default`", several.len());
    let listed = |pairs: &[(String, String)]| pairs.iter().map(|p| p.0.as_str()).collect::<Vec<_>>().join(", ");
    let mut question = Diagnostic::new(Code::WhichSignature, told)
        .help(format!("choose one, for example with --signature {}", several[0].name));
    for s in several {
        question = question.note(format!("{}({}) -> {}", s.name, listed(&s.inputs), listed(&s.outputs)));
    }
    question.into()
}

/// Replaces the signature's names in a request by TensorFlow's tensor names.
pub fn to_tensor_names(request: &Request, signature: Option<&Signature>) -> Request {
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

/// Name of the output `at` in a signature; `None` if the signature does not list it. `pairs` are names and tensors of the signature's
/// inputs or outputs.
pub fn name_in_signature(pairs: &[(String, String)], names: &NodesByName, at: Endpoint) -> Option<String> {
    let found = pairs.iter().find(|(_, tensor)| names.endpoint("tensor", tensor).is_ok_and(|e| e == at));
    found.map(|(key, _)| key.clone())
}

/// Adds to the error for an unknown name the names that `signature` has, or, without a chosen signature, the one that has the name.
pub fn add_signature_names(
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
