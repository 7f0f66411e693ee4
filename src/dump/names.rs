//! File names of dumps: `[<microseconds>.]module_0000.NAME.suffix`.

/// Maximum length of a file name in bytes.
const LONGEST: usize = 255;

/// Common prefix of the names of one module's dump files.
#[derive(Debug)]
pub(super) struct DumpNames {
    module: String,
    number: u64,
    stamp: String,
}

impl DumpNames {
    pub fn new(module: &str, number: u64, micros: Option<u64>) -> DumpNames {
        let stamp = micros.map_or_else(String::new, |m| format!("{m}."));
        DumpNames { module: module.to_string(), number, stamp }
    }
    /// The name of a file, with the time stamp if there is one.
    pub fn file_name(&self, suffix: &str) -> String {
        self.name(&self.stamp, suffix)
    }
    /// The name of a file, without the time stamp.
    pub fn file_name_without_time(&self, suffix: &str) -> String {
        self.name("", suffix)
    }
    /// The name of a file; omits the module's name if the result would be too long.
    fn name(&self, stamp: &str, suffix: &str) -> String {
        let whole = format!("{stamp}module_{:04}.{}.{suffix}", self.number, self.module);
        let short = || format!("{stamp}module_{:04}.{suffix}", self.number);
        sanitised(&if whole.len() > LONGEST { short() } else { whole })
    }
}

/// Replaces characters that are special in paths and patterns.
fn sanitised(name: &str) -> String {
    name.chars().map(|c| if matches!(c, '/' | '\\' | '[' | ']' | ' ') { '_' } else { c }).collect()
}
