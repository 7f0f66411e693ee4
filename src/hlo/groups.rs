//! Device groups of collectives: `replica_groups` and `source_target_pairs` as ranks.
//!
//! The numbers in a group identify replicas, partitions or devices, depending on `channel_id` and `use_global_device_ids`.
//! Partition `p` of replica `r` is device `r · partitions + p`, called the device's rank here.
use super::attrs::ForeignOp;
use crate::diag::{Code, Error, Result};

/// Upper limit of devices, as the tables of an object grow with them.
const MOST_DEVICES: u64 = 1 << 12;

/// Upper limit of the numbers to which `[groups,size]<=[n]` is expanded, as a short text can state any number.
const MOST_COUNTED: u64 = 1 << 20;

/// Number of devices that run a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Devices {
    /// Number of replicas: copies of the program with data of their own.
    pub replicas: u32,
    /// Number of partitions of each replica.
    pub partitions: u32,
}

impl Devices {
    /// Devices of a module with this many replicas and partitions per replica.
    ///
    /// # Errors
    /// `Code::SeveralDevices` for zero, and above the limit.
    pub fn new([replicas, partitions]: [u64; 2]) -> Result<Devices> {
        let all = replicas.checked_mul(partitions).filter(|n| (1..=MOST_DEVICES).contains(n));
        match (all, u32::try_from(replicas), u32::try_from(partitions)) {
            (Some(_), Ok(replicas), Ok(partitions)) => Ok(Devices { replicas, partitions }),
            _ => {
                let told =
                    format!("{replicas} replicas of {partitions} partitions; there may be {MOST_DEVICES} devices");
                Err(Error::user(Code::SeveralDevices, told))
            }
        }
    }
    /// Number of devices.
    pub fn count(self) -> u32 {
        self.replicas * self.partitions
    }
}

/// The ranks that a collective joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectiveGroups {
    /// Lists of ranks that exchange values, in the order of their parts.
    Groups(Vec<Vec<u32>>),
    /// Sender and receiver of each transfer.
    Pairs(Vec<[u32; 2]>),
}

/// The meaning of the numbers in a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GroupMode {
    /// Replicas; each partition has a group of its own.
    Replicas,
    /// Partitions; each replica has a group of its own.
    Partitions,
    /// Replicas, each with all of its partitions.
    Both,
    /// Devices, by rank.
    Devices,
}

/// The groups of ranks that collective `f` joins.
///
/// # Errors
/// `Code::HloInvalid` for device numbers out of range, for groups of several sizes, and if a device is in no group but needs a result.
pub fn participating_ranks(f: &ForeignOp, devices: Devices) -> Result<CollectiveGroups> {
    let invalid = |told: &str| Error::user(Code::HloInvalid, format!("{}: {told}", f.opcode));
    let mode = group_mode(f).map_err(invalid)?;
    if is_permute(f) {
        let text = f.attr("source_target_pairs").unwrap_or("{}");
        let pairs = parse_groups(text).ok_or_else(|| invalid("source_target_pairs are no pairs"))?;
        return pairs_of(&pairs, mode, devices).map(CollectiveGroups::Pairs).map_err(invalid);
    }
    let text = f.attr("replica_groups").unwrap_or("{}");
    let written = parse_groups(text).ok_or_else(|| invalid("replica_groups are no groups"))?;
    let groups = groups_of(written, mode, devices).map_err(invalid)?;
    let mut seen = vec![false; devices.count() as usize];
    for &rank in groups.iter().flatten() {
        if std::mem::replace(&mut seen[rank as usize], true) {
            return Err(invalid("a device stands in two groups"));
        }
    }
    if f.opcode != "collective-broadcast" {
        if groups.windows(2).any(|w| w[0].len() != w[1].len()) {
            return Err(invalid("groups have several sizes"));
        }
        if seen.contains(&false) {
            return Err(invalid("a device stands in no group"));
        }
    }
    Ok(CollectiveGroups::Groups(groups))
}

/// Whether an opcode is a collective: its results depend on values of other devices.
pub fn is_collective(opcode: &str) -> bool {
    matches!(
        opcode,
        "all-reduce" | "all-gather" | "reduce-scatter" | "all-to-all" | "collective-permute" | "collective-broadcast"
    )
}

/// Whether an opcode is a collective, or starts or ends one.
pub fn involves_collective(opcode: &str) -> bool {
    is_collective(opcode.strip_suffix("-start").or_else(|| opcode.strip_suffix("-done")).unwrap_or(opcode))
}

/// Whether a collective permute on one device sends to itself.
pub fn is_self_permute(permutation: &ForeignOp) -> bool {
    let pairs = permutation.attr("source_target_pairs").and_then(parse_groups);
    pairs.is_some_and(|pairs| pairs.iter().any(|pair| pair[..] == [0, 0]))
}

fn is_permute(f: &ForeignOp) -> bool {
    f.opcode.starts_with("collective-permute")
}

fn group_mode(f: &ForeignOp) -> Result<GroupMode, &'static str> {
    let has_channel = f.attr("channel_id").is_some_and(|c| c != "0");
    // These opcodes have no such attribute: with a channel, the numbers are partitions.
    let asks = !is_permute(f) && !matches!(f.opcode.as_str(), "all-to-all" | "collective-broadcast");
    match (has_channel, f.attr("use_global_device_ids") == Some("true")) {
        (false, true) => Err("use_global_device_ids without a channel"),
        (false, false) => Ok(GroupMode::Replicas),
        (true, true) => Ok(GroupMode::Devices),
        (true, false) if asks => Ok(GroupMode::Both),
        (true, false) => Ok(GroupMode::Partitions),
    }
}

fn pairs_of(pairs: &[Vec<i64>], mode: GroupMode, devices: Devices) -> Result<Vec<[u32; 2]>, &'static str> {
    let Devices { replicas, partitions } = devices;
    let mut all = Vec::new();
    for pair in pairs {
        let &[from, to] = &pair[..] else { return Err("a pair has a source and a target") };
        match mode {
            GroupMode::Replicas | GroupMode::Both => {
                let (from, to) = (checked_below(from, replicas)?, checked_below(to, replicas)?);
                all.extend((0..partitions).map(|p| [from * partitions + p, to * partitions + p]));
            }
            GroupMode::Partitions => {
                let (from, to) = (checked_below(from, partitions)?, checked_below(to, partitions)?);
                all.extend((0..replicas).map(|r| [r * partitions + from, r * partitions + to]));
            }
            GroupMode::Devices => {
                all.push([checked_below(from, devices.count())?, checked_below(to, devices.count())?])
            }
        }
    }
    for side in 0..2 {
        let mut ends: Vec<u32> = all.iter().map(|pair| pair[side]).collect();
        ends.sort_unstable();
        if ends.windows(2).any(|w| w[0] == w[1]) {
            return Err("a device sends or receives twice");
        }
    }
    Ok(all)
}

fn groups_of(mut written: Vec<Vec<i64>>, mode: GroupMode, devices: Devices) -> Result<Vec<Vec<u32>>, &'static str> {
    let Devices { replicas, partitions } = devices;
    let most = match mode {
        GroupMode::Replicas | GroupMode::Both => replicas,
        GroupMode::Partitions => partitions,
        GroupMode::Devices => devices.count(),
    };
    written.retain(|group| !group.is_empty());
    if written.is_empty() {
        written.push((0..i64::from(most)).collect());
    }
    let mut all = Vec::new();
    for group in written {
        let group = group.into_iter().map(|n| checked_below(n, most)).collect::<Result<Vec<_>, _>>()?;
        match mode {
            GroupMode::Devices => all.push(group),
            GroupMode::Replicas => {
                all.extend((0..partitions).map(|p| group.iter().map(|r| r * partitions + p).collect::<Vec<_>>()));
            }
            GroupMode::Partitions => {
                all.extend((0..replicas).map(|r| group.iter().map(|p| r * partitions + p).collect::<Vec<_>>()));
            }
            GroupMode::Both => {
                all.push(group.iter().flat_map(|r| (0..partitions).map(move |p| r * partitions + p)).collect());
            }
        }
    }
    Ok(all)
}

fn checked_below(number: i64, most: u32) -> Result<u32, &'static str> {
    u32::try_from(number).ok().filter(|&n| n < most).ok_or("a group names a device that there is not")
}

/// Parses device groups, `{{0,1},{2,3}}` or `[2,2]<=[4]T(1,0)`; `None` for other texts.
pub fn parse_groups(text: &str) -> Option<Vec<Vec<i64>>> {
    let text = text.trim();
    if text.starts_with('[') {
        return iota(text);
    }
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut out = Vec::new();
    for part in inner.split('}') {
        let part = part.trim().trim_start_matches(',').trim();
        if part.is_empty() {
            continue;
        }
        out.push(numbers(part.strip_prefix('{')?)?);
    }
    Some(out)
}

/// Groups as `{{0,1},{2,3}}`, which [`parse_groups`] reads.
pub fn format_groups<T: ToString>(groups: &[Vec<T>]) -> String {
    let one = |group: &Vec<T>| format!("{{{}}}", group.iter().map(T::to_string).collect::<Vec<_>>().join(","));
    format!("{{{}}}", groups.iter().map(one).collect::<Vec<_>>().join(","))
}

fn numbers(text: &str) -> Option<Vec<i64>> {
    text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(|s| s.parse().ok()).collect()
}

/// Parses `[groups,size]<=[dims]T(perm)`: numbers from 0 on as an array of sizes `dims`, transposed, and divided into groups.
fn iota(text: &str) -> Option<Vec<Vec<i64>>> {
    let (shape, from) = text.split_once("<=")?;
    let [groups, size] = numbers(shape.trim().strip_prefix('[')?.strip_suffix(']')?)?[..] else { return None };
    let (dims, perm) = from.trim().strip_prefix('[')?.split_once(']')?;
    let dims = numbers(dims)?;
    let perm: Vec<i64> = match perm.trim().strip_prefix("T(") {
        Some(perm) => numbers(perm.strip_suffix(')')?)?,
        None => (0..dims.len() as i64).collect(),
    };
    let count = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d).filter(|_| d > 0))?;
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    let fits = groups > 0 && size > 0 && groups.checked_mul(size) == Some(count) && count as u64 <= MOST_COUNTED;
    if !fits || !sorted.into_iter().eq(0..dims.len() as i64) {
        return None;
    }
    let strides: Vec<i64> = (0..dims.len()).map(|i| dims[i + 1..].iter().product()).collect();
    let turned: Vec<(i64, i64)> = perm.iter().map(|&axis| (dims[axis as usize], strides[axis as usize])).collect();
    let number = |mut at: i64| {
        turned.iter().rev().fold(0, |sum, &(dim, stride)| {
            let own = at % dim;
            at /= dim;
            sum + own * stride
        })
    };
    let all: Vec<i64> = (0..count).map(number).collect();
    Some(all.chunks(size as usize).map(<[i64]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(opcode: &str, attrs: &[(&str, &str)], replicas: u64, partitions: u64) -> Result<CollectiveGroups> {
        let attrs = attrs.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let f = ForeignOp { opcode: opcode.to_string(), attrs, calls: Vec::new() };
        participating_ranks(&f, Devices::new([replicas, partitions])?)
    }

    fn groups(attrs: &[(&str, &str)], replicas: u64, partitions: u64) -> Vec<Vec<u32>> {
        match of("all-reduce", attrs, replicas, partitions) {
            Ok(CollectiveGroups::Groups(groups)) => groups,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_channel_says_what_the_numbers_are() {
        let of = |more: &[(&str, &str)]| groups(&[&[("replica_groups", "{{0,1}}")], more].concat(), 2, 2);
        assert_eq!(of(&[]), [[0, 2], [1, 3]]);
        assert_eq!(of(&[("channel_id", "1")]), [[0, 1, 2, 3]]);
        assert_eq!(groups(&[], 2, 2), [[0, 2], [1, 3]]);
        let devices = [("replica_groups", "{{3,0},{1,2}}"), ("channel_id", "1"), ("use_global_device_ids", "true")];
        assert_eq!(groups(&devices, 2, 2), [[3, 0], [1, 2]]);
    }

    #[test]
    fn an_iota_is_transposed() {
        assert_eq!(parse_groups("[2,2]<=[4]"), Some(vec![vec![0, 1], vec![2, 3]]));
        assert_eq!(parse_groups("[2,2]<=[2,2]T(1,0)"), Some(vec![vec![0, 2], vec![1, 3]]));
        assert_eq!(parse_groups("[3,2]<=[2,3]T(1,0)"), Some(vec![vec![0, 3], vec![1, 4], vec![2, 5]]));
        assert_eq!(parse_groups("[2,2]<=[5]"), None);
    }

    #[test]
    fn what_leaves_a_device_out_is_refused() {
        for text in ["{{0,1}}", "{{0,1},{2}}", "{{0,4}}", "{{0,1},{1,2}}"] {
            assert!(of("all-gather", &[("replica_groups", text)], 4, 1).is_err(), "{text}");
        }
        let pairs = of("collective-permute", &[("source_target_pairs", "{{0,1},{3,0}}")], 4, 1);
        assert_eq!(pairs.ok(), Some(CollectiveGroups::Pairs(vec![[0, 1], [3, 0]])));
    }
}
