//! The flags in `XLA_FLAGS` that select dumps.
use crate::diag::{Code, Error, Result};
use regex::Regex;

/// Flags that select what is dumped, the folder and the formats.
#[derive(Clone, Debug)]
pub struct DumpFlags {
    /// The output folder; `-` is standard output, empty means not given.
    pub to: String,
    /// Whether HLO text is written, which is also the default format.
    pub as_text: bool,
    /// Whether HloProto is written.
    pub as_proto: bool,
    /// Whether HloProto is compressed with gzip.
    pub compress_protos: bool,
    /// Whether a Graphviz graph is written.
    pub as_dot: bool,
    /// Whether an HTML page is written.
    pub as_html: bool,
    /// Whether text includes constants of more than ten elements.
    pub large_constants: bool,
    /// Whether text omits the metadata of instructions.
    pub disable_metadata: bool,
    /// Dumps only modules whose name matches this.
    pub module_re: Option<Regex>,
    /// Dumps modules also before and after passes whose name matches this.
    pub pass_re: Option<Regex>,
    /// Restricts `pass_re` to pipelines whose name matches this.
    pub pipeline_re: Option<Regex>,
    /// Whether file names begin with a time stamp.
    pub include_timestamp: bool,
    /// Maximum number of modules that are dumped.
    pub max_modules: Option<u64>,
    /// Whether dumping is enabled at all.
    pub enabled: bool,
}

impl Default for DumpFlags {
    fn default() -> Self {
        DumpFlags {
            to: String::new(),
            as_text: false,
            as_proto: false,
            compress_protos: false,
            as_dot: false,
            as_html: false,
            large_constants: false,
            disable_metadata: false,
            module_re: None,
            pass_re: None,
            pipeline_re: None,
            include_timestamp: false,
            max_modules: None,
            enabled: true,
        }
    }
}

impl DumpFlags {
    /// Whether anything is dumped.
    pub fn is_on(&self) -> bool {
        self.enabled && (!self.to.is_empty() || self.pass_re.is_some() || self.any_format())
    }
    /// Whether the dump goes to standard output.
    pub fn to_stdout(&self) -> bool {
        matches!(self.to.as_str(), "" | "-")
    }
    fn any_format(&self) -> bool {
        self.as_text || self.as_proto || self.as_dot || self.as_html
    }
    /// Whether text is to be written.
    pub(super) fn writes_text(&self) -> bool {
        self.as_text || !self.any_format()
    }
    /// Every option with a value other than its default, one per line.
    pub(super) fn debug_options(&self) -> String {
        let pattern = |re: &Option<Regex>| re.as_ref().map_or_else(String::new, |re| re.as_str().to_string());
        let texts = [
            ("xla_dump_to", self.to.clone()),
            ("xla_dump_hlo_module_re", pattern(&self.module_re)),
            ("xla_dump_hlo_pass_re", pattern(&self.pass_re)),
            ("xla_dump_hlo_pipeline_re", pattern(&self.pipeline_re)),
        ];
        let flags = [
            ("xla_dump_hlo_as_text", self.as_text),
            ("xla_dump_hlo_as_proto", self.as_proto),
            ("xla_dump_compress_protos", self.compress_protos),
            ("xla_dump_hlo_as_dot", self.as_dot),
            ("xla_dump_hlo_as_html", self.as_html),
            ("xla_dump_large_constants", self.large_constants),
            ("xla_dump_disable_metadata", self.disable_metadata),
            ("xla_dump_include_timestamp", self.include_timestamp),
        ];
        let mut out = String::new();
        for (name, text) in texts.iter().filter(|t| !t.1.is_empty()) {
            out += &format!("{name}: \"{}\"\n", text.escape_default());
        }
        for (name, _) in flags.iter().filter(|f| f.1) {
            out += &format!("{name}: true\n");
        }
        if let Some(most) = self.max_modules {
            out += &format!("xla_dump_max_hlo_modules: {most}\n");
        }
        out
    }
}

/// Names of the supported flags.
const KNOWN: &[&str] = &[
    "xla_dump_to",
    "xla_dump_hlo_as_text",
    "xla_dump_hlo_as_long_text",
    "xla_dump_hlo_as_proto",
    "xla_dump_compress_protos",
    "xla_dump_hlo_as_dot",
    "xla_dump_hlo_as_html",
    "xla_dump_large_constants",
    "xla_dump_disable_metadata",
    "xla_dump_hlo_module_re",
    "xla_dump_hlo_pass_re",
    "xla_dump_hlo_pipeline_re",
    "xla_dump_include_timestamp",
    "xla_dump_max_hlo_modules",
    "xla_enable_dumping",
];

/// Parses the flags in `text`, separated by blanks, over those of `flags`; returns a warning for each unknown flag.
///
/// # Errors
/// `Code::BadOption` for invalid values of a flag.
pub fn parse(text: &str, mut flags: DumpFlags) -> Result<(DumpFlags, Vec<String>)> {
    let mut warnings = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_start_matches('-');
        let (name, value) = bare.split_once('=').unwrap_or((bare, "true"));
        if !word.starts_with("--") || !KNOWN.contains(&name) {
            let near = nearest(name);
            warnings.push(format!("`{word}` in XLA_FLAGS is not known and has no effect; near it is --{near}"));
            continue;
        }
        set(name, value, &mut flags)?;
    }
    Ok((flags, warnings))
}

fn set(name: &str, value: &str, flags: &mut DumpFlags) -> Result<()> {
    let refuse = |wanted: &str| Err(Error::user(Code::BadOption, format!("--{name} takes {wanted}, not `{value}`")));
    let switch = match value {
        "true" | "1" | "True" | "TRUE" => Some(true),
        "false" | "0" | "False" | "FALSE" => Some(false),
        _ => None,
    };
    let place = match name {
        "xla_dump_hlo_as_text" => Some(&mut flags.as_text),
        "xla_dump_hlo_as_proto" => Some(&mut flags.as_proto),
        "xla_dump_compress_protos" => Some(&mut flags.compress_protos),
        "xla_dump_hlo_as_dot" => Some(&mut flags.as_dot),
        "xla_dump_hlo_as_html" => Some(&mut flags.as_html),
        "xla_dump_large_constants" => Some(&mut flags.large_constants),
        "xla_dump_disable_metadata" => Some(&mut flags.disable_metadata),
        "xla_dump_include_timestamp" => Some(&mut flags.include_timestamp),
        "xla_enable_dumping" => Some(&mut flags.enabled),
        _ => None,
    };
    if let Some(place) = place {
        return match switch {
            Some(on) => {
                *place = on;
                Ok(())
            }
            None => refuse("true or false"),
        };
    }
    let pattern = || match (value, Regex::new(value)) {
        ("", _) => Ok(None),
        (_, Ok(re)) => Ok(Some(re)),
        (_, Err(_)) => refuse("a regular expression").map(|()| None),
    };
    match name {
        "xla_dump_to" => flags.to = value.to_string(),
        "xla_dump_hlo_module_re" => flags.module_re = pattern()?,
        "xla_dump_hlo_pass_re" => flags.pass_re = pattern()?,
        "xla_dump_hlo_pipeline_re" => flags.pipeline_re = pattern()?,
        "xla_dump_max_hlo_modules" => match value.parse::<i64>() {
            Ok(most) => flags.max_modules = u64::try_from(most).ok(),
            Err(_) => return refuse("a number"),
        },
        // Text is always in the long form.
        _ => {}
    }
    Ok(())
}

/// The known flag whose common prefix and suffix with `name` are longest.
fn nearest(name: &str) -> &'static str {
    let shared = |known: &str| {
        let front = known.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        let back = known.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count();
        front + back
    };
    KNOWN.iter().copied().max_by_key(|known| shared(known)).unwrap_or("xla_dump_to")
}
