//! `--config`: reads a tf2xla.Config with feeds, fetches and their C names.
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::TfType;
use crate::import::{self, proto};
use crate::lower::Lowered;
use crate::package::names;
use crate::prepare::{DeclaredVariable, FeedSpec};
use crate::tensor::TensorInfo;
use proto::tensorflow::TensorShapeProto;
use proto::tf2xla::{TensorId, Variable};
use std::path::Path;

/// The content of a `tf2xla.Config` file.
#[derive(Debug, Default)]
pub struct Config {
    /// Inputs, in order.
    pub feeds: Vec<FeedSpec>,
    /// Outputs, in order.
    pub fetches: Vec<String>,
    /// Variables that are kept as state.
    pub variables: Vec<DeclaredVariable>,
    /// C names of the inputs; empty strings for inputs without one.
    feed_names: Vec<String>,
    /// C names of the outputs; empty strings for outputs without one.
    fetch_names: Vec<String>,
}

/// Reads a configuration. Errors: `Code::Io`, `Code::BadEncoding`, `Code::BadOption` for invalid ids, types and shapes.
pub fn load(path: &Path) -> Result<Config> {
    let file = path.display().to_string();
    let message = import::load_config(path).map_err(|e| e.in_file(&file))?;
    let mut config = Config::default();
    for feed in &message.feed {
        let name = tensor_name(feed.id.as_ref()).map_err(|e| e.in_file(&file))?;
        let dtype = match TfType::from_number(feed.type_.value()).storage_type() {
            TfType::Data(t) => Some(t),
            TfType::Unknown(0) => None,
            other => {
                return Err(bad(&file, format!("the feed `{name}` is of {other}, which compiled code can't take")));
            }
        };
        config.feeds.push(FeedSpec { name, dtype, dims: feed.shape.as_ref().and_then(dims), ..FeedSpec::default() });
        config.feed_names.push(feed.name.clone());
    }
    for fetch in &message.fetch {
        config.fetches.push(tensor_name(fetch.id.as_ref()).map_err(|e| e.in_file(&file))?);
        config.fetch_names.push(fetch.name.clone());
    }
    for variable in &message.variable {
        config.variables.push(declared(variable).map_err(|e| e.in_file(&file))?);
    }
    Ok(config)
}

/// Converts a variable of the configuration.
fn declared(variable: &Variable) -> Result<DeclaredVariable> {
    let node = variable.node_name.clone();
    let dtype = match TfType::from_number(variable.type_.value()).storage_type() {
        TfType::Data(t) => Some(t),
        TfType::Unknown(0) => None,
        other => {
            return Err(Error::user(
                Code::BadOption,
                format!("the variable `{node}` is of {other}, which is no array"),
            ));
        }
    };
    let called = Some(variable.name.clone()).filter(|name| !name.is_empty());
    if let Some(name) = called.as_deref().filter(|name| !names::is_identifier(name)) {
        return Err(no_identifier(name));
    }
    Ok(DeclaredVariable { node, called, dtype, dims: variable.shape.as_ref().and_then(dims) })
}

fn no_identifier(name: &str) -> Error {
    Diagnostic::new(Code::BadOption, format!("`{name}` can't be a name in C"))
        .help(format!("for example `{}`", names::identifier(name)))
        .into()
}

fn bad(file: &str, message: String) -> Error {
    Error::user(Code::BadOption, message).in_file(file)
}

fn tensor_name(id: Option<&TensorId>) -> Result<String> {
    match id.filter(|id| !id.node_name.is_empty()) {
        Some(id) => Ok(format!("{}:{}", id.node_name, id.output_index)),
        None => Err(Error::user(Code::BadOption, "a feed or fetch of the configuration has no id")),
    }
}

/// The dimensions; negative ones are unknown.
fn dims(shape: &TensorShapeProto) -> Option<Vec<Option<u64>>> {
    (!shape.unknown_rank).then(|| shape.dim.iter().map(|d| u64::try_from(d.size).ok()).collect())
}

impl Config {
    /// Gives arguments and results the C names of the configuration.
    ///
    /// Errors: `Code::BadOption` for an invalid C identifier, `Code::NameClash` for a repeated one.
    pub fn apply_names(&self, lowered: &mut Lowered) -> Result<()> {
        apply_names(&mut lowered.args, &self.feed_names)?;
        apply_names(&mut lowered.results, &self.fetch_names)
    }
}

fn apply_names(infos: &mut [TensorInfo], wanted: &[String]) -> Result<()> {
    for (i, name) in wanted.iter().take(infos.len()).enumerate().filter(|(_, name)| !name.is_empty()) {
        if !names::is_identifier(name) {
            return Err(no_identifier(name));
        }
        if let Some(other) = infos.iter().take(wanted.len()).enumerate().find(|(j, o)| *j != i && o.field == *name) {
            let named = other.0 < i || wanted.get(other.0).is_some_and(|w| w == name);
            if named {
                let message = format!("`{}` and `{}` are both called `{name}`", other.1.name, infos[i].name);
                return Err(Error::user(Code::NameClash, message));
            }
        }
        infos[i].field = name.clone();
    }
    names::make_names_unique(infos);
    Ok(())
}
