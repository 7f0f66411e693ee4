//! Sizes of this machine's data caches, and how many bytes to read so that they are served from a given level.
use std::collections::BTreeMap;
use std::path::Path;

/// A level of the memory hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryLevel {
    /// First-level data cache.
    L1,
    /// Second-level cache.
    L2,
    /// Third-level cache.
    L3,
    /// Main memory.
    Dram,
}

/// All levels, nearest first.
pub const LEVELS: &[MemoryLevel] = &[MemoryLevel::L1, MemoryLevel::L2, MemoryLevel::L3, MemoryLevel::Dram];

impl MemoryLevel {
    /// The level's display name.
    pub fn name(self) -> &'static str {
        match self {
            MemoryLevel::L1 => "L1",
            MemoryLevel::L2 => "L2",
            MemoryLevel::L3 => "L3",
            MemoryLevel::Dram => "DRAM",
        }
    }
}

/// The caches of one level.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheLevel {
    /// Size of each cache in bytes.
    pub bytes: u64,
    /// Number of such caches in the machine.
    pub count: u64,
}

/// The data caches of the machine.
#[derive(Clone, Debug)]
pub struct MachineCaches {
    /// Caches by level; a machine may lack a third level.
    all: BTreeMap<MemoryLevel, CacheLevel>,
    /// Whether the sizes were reported by the system rather than assumed.
    pub known: bool,
}

/// Maximum number of bytes read from main memory by all threads together.
const MOST_BYTES: u64 = 1 << 30;

impl MachineCaches {
    /// Reads the caches from `/sys` on Linux; elsewhere assumes common sizes and sets `known` to false.
    pub fn of_this_machine() -> MachineCaches {
        let all = read_caches(Path::new("/sys/devices/system/cpu"));
        if all.contains_key(&MemoryLevel::L1) && all.contains_key(&MemoryLevel::L2) {
            return MachineCaches { all, known: true };
        }
        let count = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let of = |bytes, count| CacheLevel { bytes, count };
        let usual = [
            (MemoryLevel::L1, of(32 << 10, count)),
            (MemoryLevel::L2, of(1 << 20, count)),
            (MemoryLevel::L3, of(32 << 20, 1)),
        ];
        MachineCaches { all: usual.into_iter().collect(), known: false }
    }

    /// The caches of a level, if the machine has any.
    pub fn get(&self, level: MemoryLevel) -> Option<CacheLevel> {
        self.all.get(&level).copied()
    }

    /// Number of bytes that each of `threads` threads must read repeatedly to be served from `level` and not from a nearer one; `None`
    /// if there is no such number.
    pub fn bytes_per_thread(&self, level: MemoryLevel, threads: usize) -> Option<u64> {
        let threads = threads as u64;
        let share = |c: CacheLevel| c.bytes / threads.div_ceil(c.count.max(1)).max(1);
        let nearer = match level {
            MemoryLevel::L1 => 0,
            MemoryLevel::L2 => self.get(MemoryLevel::L1).map_or(0, share),
            MemoryLevel::L3 => self.get(MemoryLevel::L2).map_or(0, share),
            MemoryLevel::Dram => 0,
        };
        if level == MemoryLevel::Dram {
            let caches: u64 = self.all.values().map(|c| c.bytes * c.count).sum();
            return Some((4 * caches).clamp(64 << 20, MOST_BYTES) / threads.max(1));
        }
        // neither the whole cache, which others use too, nor so little that the nearer level holds a part of it
        let part = share(self.get(level)?) / 2;
        let bytes = if level == MemoryLevel::L3 { part.min(8 * nearer) } else { part };
        (bytes >= 2 * nearer).then_some(bytes)
    }
}

/// The data caches of all processors listed below `folder`, each once.
fn read_caches(folder: &Path) -> BTreeMap<MemoryLevel, CacheLevel> {
    let mut found: BTreeMap<(MemoryLevel, String), u64> = BTreeMap::new();
    let is_number = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    for cpu in names(folder).into_iter().filter(|n| n.strip_prefix("cpu").is_some_and(is_number)) {
        let caches = folder.join(cpu).join("cache");
        for index in names(&caches) {
            let read = |file: &str| {
                let text = std::fs::read_to_string(caches.join(&index).join(file)).unwrap_or_default();
                text.trim().to_string()
            };
            let level = match (read("level").as_str(), read("type").as_str()) {
                ("1", "Data" | "Unified") => MemoryLevel::L1,
                ("2", "Data" | "Unified") => MemoryLevel::L2,
                ("3", "Data" | "Unified") => MemoryLevel::L3,
                _ => continue,
            };
            if let Some(bytes) = size(&read("size")) {
                found.insert((level, read("shared_cpu_list")), bytes);
            }
        }
    }
    let mut all: BTreeMap<MemoryLevel, CacheLevel> = BTreeMap::new();
    for ((level, _), bytes) in found {
        let cache = all.entry(level).or_default();
        *cache = CacheLevel { bytes: cache.bytes.max(bytes), count: cache.count + 1 };
    }
    all
}

/// Parses a size such as `32K` or `8M` into bytes.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "" => Some(number),
        "K" => number.checked_mul(1 << 10),
        "M" => number.checked_mul(1 << 20),
        _ => None,
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_that_processors_share_count_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for cpu in 0..4 {
            for (index, level, kind, bytes, shared) in [
                (0, "1", "Data", "48K", cpu.to_string()),
                (1, "1", "Instruction", "32K", cpu.to_string()),
                (2, "2", "Unified", "2048K", cpu.to_string()),
                (3, "3", "Unified", "32M", "0-3".to_string()),
            ] {
                let at = folder.path().join(format!("cpu{cpu}/cache/index{index}"));
                std::fs::create_dir_all(&at).expect("made");
                for (file, text) in [("level", level), ("type", kind), ("size", bytes), ("shared_cpu_list", &shared)] {
                    std::fs::write(at.join(file), format!("{text}\n")).expect("written");
                }
            }
        }
        let caches = MachineCaches { all: read_caches(folder.path()), known: true };
        let of = |level| caches.get(level).map(|c| (c.bytes, c.count));
        assert_eq!(of(MemoryLevel::L1), Some((48 << 10, 4)));
        assert_eq!(of(MemoryLevel::L2), Some((2 << 20, 4)));
        assert_eq!(of(MemoryLevel::L3), Some((32 << 20, 1)));
        assert_eq!(caches.bytes_per_thread(MemoryLevel::L3, 1), Some(16 << 20));
        assert_eq!(caches.bytes_per_thread(MemoryLevel::L3, 4), Some(4 << 20));
    }
}
