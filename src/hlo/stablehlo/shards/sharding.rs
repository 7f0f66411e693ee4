//! Shardings: how an array is divided among the partitions of a module, in Shardy's and in HLO's notation.
//!
//! Source: Shardy's documentation of `#sdy.sharding` and `#sdy.mesh`; XLA's `HloSharding`.
use indexmap::IndexMap;
use std::fmt;

/// Meshes of a module, by name.
pub(in crate::hlo::stablehlo) type Meshes = IndexMap<String, Mesh>;

/// Upper limit of the devices of a mesh or sharding.
const MOST_DEVICES: u64 = 1 << 12;

/// Named axes on which the devices of a module are arranged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::hlo::stablehlo) struct Mesh {
    /// Name and size of each axis, the slowest first.
    pub axes: Vec<(String, u64)>,
    /// Devices in row-major order of the axes.
    devices: Vec<u32>,
    /// Whether the mesh is the one device that it lists: without axes and a list it stands for all devices.
    is_maximal: bool,
}

impl Mesh {
    /// Parses `<["i"=2, "j"=2]>` and `<["i"=2], device_ids=[1, 0]>`; `None` for other texts and for meshes of too many devices.
    pub fn parse(text: &str) -> Option<Mesh> {
        let inside = text.trim().trim_start_matches("#sdy.mesh").strip_prefix('<')?.strip_suffix('>')?;
        let (axes, rest) = inside.trim().strip_prefix('[')?.split_once(']')?;
        let axes = list(axes).map(|axis| {
            let (name, size) = axis.split_once('=')?;
            Some((unquote(name).to_string(), size.trim().parse().ok()?))
        });
        let axes: Vec<(String, u64)> = axes.collect::<Option<_>>()?;
        let count = product(axes.iter().map(|axis| axis.1))?;
        let devices = match rest.trim().trim_start_matches(',').trim().strip_prefix("device_ids") {
            None if rest.trim().is_empty() => (0..count as u32).collect(),
            None => return None,
            Some(ids) => {
                let ids = ids.trim().strip_prefix('=')?.trim().strip_prefix('[')?.strip_suffix(']')?;
                list(ids).map(|id| id.parse().ok()).collect::<Option<Vec<u32>>>()?
            }
        };
        let is_maximal = axes.is_empty() && devices.len() == 1 && rest.contains("device_ids");
        (is_maximal || is_permutation(&devices, count)).then_some(Mesh { axes, devices, is_maximal })
    }

    /// The device of a maximal mesh; `None` for other meshes.
    pub fn only_device(&self) -> Option<u32> {
        self.devices.first().copied().filter(|_| self.is_maximal)
    }

    /// For each device, its index among the positions along these axes: devices of one index differ in other axes alone.
    pub fn indices_along(&self, axes: &[String]) -> Vec<u64> {
        let mut indices = vec![0; self.devices.len()];
        for (at, &device) in self.devices.iter().enumerate() {
            let (mut rest, mut index, mut count) = (at as u64, 0, 1);
            for (name, size) in self.axes.iter().rev() {
                if axes.contains(name) {
                    index += rest % size * count;
                    count *= size;
                }
                rest /= size;
            }
            // a mesh of one device has one that need not be the first
            indices.get_mut(device as usize).into_iter().for_each(|own| *own = index);
        }
        indices
    }
}

/// Division of an array into equal parts, each of which lies on one device or on several, or is the sum of what several devices have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::hlo::stablehlo) struct Sharding {
    /// Number of parts along each dimension of the array.
    pub parts: Vec<u64>,
    /// Number of partial sums that add up to a part (unreduced axes); 1 where devices have the parts themselves.
    pub partial_sums: u64,
    /// Devices by part, in row-major order of the parts, then by partial sum; those that have the same follow each other.
    devices: Vec<u32>,
}

impl Sharding {
    /// Sharding of an array that each of `count` devices has as a whole.
    pub fn replicated(rank: usize, count: usize) -> Sharding {
        Sharding { parts: vec![1; rank], partial_sums: 1, devices: (0..count as u32).collect() }
    }

    /// Parses Shardy's `#sdy.sharding<@mesh, [{"i"}, {"j", ?}], replicated={"k"}, unreduced={"l"}>`; `None` for parts of axes, meshes that
    /// are not in `meshes`, and other texts. Where `only` names axes, the array is taken to be whole along the others.
    pub fn parse_shardy(text: &str, meshes: &Meshes, only: Option<&[String]>) -> Option<Sharding> {
        let inside = text.trim().trim_start_matches("#sdy.sharding").trim().strip_prefix('<')?.strip_suffix('>')?;
        let (mesh, rest) = inside.trim().strip_prefix('@')?.split_once(',')?;
        let mesh = meshes.get(unquote(mesh))?;
        let (dims, rest) = rest.trim().strip_prefix('[')?.split_once(']')?;
        let mut order = Vec::new();
        let mut parts = Vec::new();
        for dim in braces(dims)? {
            let mut count = 1;
            for axis in list(dim).filter(|axis| *axis != "?") {
                let at = mesh.axes.iter().position(|(name, _)| name == unquote(axis))?;
                if only.is_none_or(|only| only.contains(&mesh.axes[at].0)) {
                    count *= mesh.axes[at].1;
                    order.push(at);
                }
            }
            parts.push(count);
        }
        let mut partial_sums = 1;
        if let Some((_, axes)) = rest.split_once("unreduced={") {
            for axis in list(axes.split_once('}')?.0) {
                let at = mesh.axes.iter().position(|(name, _)| name == unquote(axis))?;
                partial_sums *= mesh.axes[at].1;
                order.push(at);
            }
        }
        order.extend((0..mesh.axes.len()).filter(|at| !order.contains(at)).collect::<Vec<_>>());
        let sizes: Vec<u64> = mesh.axes.iter().map(|axis| axis.1).collect();
        let devices = || transposed(&mesh.devices, &sizes, &order);
        (order.len() == sizes.len()).then(|| Sharding { parts, partial_sums, devices: devices() })
    }

    /// Parses HLO's `{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}` and `{replicated}` of an array of this rank on `count`
    /// devices; `None` for shardings that depend on the device (`manual`) and other texts.
    pub fn parse_hlo(text: &str, rank: usize, count: usize) -> Option<Sharding> {
        let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        if inside == "replicated" {
            return Some(Sharding::replicated(rank, count));
        }
        let (tiles, rest) = inside.strip_prefix("devices=[")?.split_once(']')?;
        let mut tiles = numbers(tiles)?;
        let (devices, last) = match rest.split_once(' ') {
            Some((devices, "last_tile_dim_replicate")) => (devices, true),
            None => (rest, false),
            Some(_) => return None,
        };
        let all = product(tiles.iter().copied())?;
        let devices = match devices.strip_prefix("<=[") {
            Some(iota) => {
                let (sizes, order) = iota.split_once(']')?;
                let sizes = numbers(sizes)?;
                let order = match order.strip_prefix("T(") {
                    Some(order) => numbers(order.strip_suffix(')')?)?.into_iter().map(|axis| axis as usize).collect(),
                    None if order.is_empty() => (0..sizes.len()).collect::<Vec<_>>(),
                    None => return None,
                };
                let axes: Vec<u32> = order.iter().map(|&axis| axis as u32).collect();
                if product(sizes.iter().copied())? != all || !is_permutation(&axes, sizes.len() as u64) {
                    return None;
                }
                transposed(&(0..all as u32).collect::<Vec<_>>(), &sizes, &order)
            }
            None => numbers(devices)?.into_iter().map(|id| id as u32).collect(),
        };
        if last {
            tiles.pop();
        }
        let fits = tiles.len() == rank && is_permutation(&devices, count as u64) && all == count as u64;
        fits.then_some(Sharding { parts: tiles, partial_sums: 1, devices })
    }

    /// Orders the devices that hold copies of one part by their class (`classes` by device), so that copies at one position are on devices of
    /// one class for every part. `None` where a class has not equally many devices of each part. Without classes nothing changes.
    pub fn with_copies_ordered_by_device_class(mut self, classes: &[u64]) -> Option<Sharding> {
        if classes.is_empty() {
            return Some(self);
        }
        let copies = self.copies();
        let class = |device: &u32| classes.get(*device as usize).copied();
        for same in self.devices.chunks_mut(copies.max(1)) {
            same.sort_by_key(|device| (class(device), *device));
        }
        let first: Vec<Option<u64>> = self.devices.iter().take(copies).map(class).collect();
        let is_even = self.devices.chunks(copies.max(1)).all(|same| same.iter().map(class).eq(first.iter().copied()));
        is_even.then_some(self)
    }

    /// Whether each device has the whole array.
    pub fn is_replicated(&self) -> bool {
        self.partial_sums == 1 && self.parts.iter().all(|&n| n == 1)
    }

    /// Number of devices that have the same part and term.
    fn copies(&self) -> usize {
        self.devices.len() / (self.parts.iter().product::<u64>() * self.partial_sums).max(1) as usize
    }

    /// For each device, the index of the partial sum that it has, among those that add up to its part.
    pub fn partial_sum_indices(&self) -> Vec<u64> {
        let mut indices = vec![0; self.devices.len()];
        for (at, &device) in self.devices.iter().enumerate() {
            indices[device as usize] = (at / self.copies().max(1)) as u64 % self.partial_sums;
        }
        indices
    }

    /// Groups of devices whose partial sums add up to a part.
    pub fn partial_sum_groups(&self) -> Vec<Vec<u32>> {
        let (copies, terms) = (self.copies().max(1), self.partial_sums as usize);
        let of_part = |same: &[u32]| -> Vec<Vec<u32>> {
            (0..copies).map(|i| (0..terms).map(|term| same[term * copies + i]).collect()).collect()
        };
        self.devices.chunks(copies * terms).flat_map(of_part).collect()
    }

    /// Number of devices.
    pub fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// Sizes of one part of an array of sizes `dims`; `None` where they do not divide evenly, or for another rank.
    pub fn part_dims(&self, dims: &[u64]) -> Option<Vec<u64>> {
        let fits = dims.len() == self.parts.len() && dims.iter().zip(&self.parts).all(|(d, n)| d % n == 0);
        fits.then(|| dims.iter().zip(&self.parts).map(|(d, n)| d / n).collect())
    }

    /// For each device, the index along dimension `dim` of the part that it has.
    pub fn part_indices(&self, dim: usize) -> Vec<u64> {
        let mut indices = vec![0; self.devices.len()];
        let inner = self.inner_count(dim);
        for (at, &device) in self.devices.iter().enumerate() {
            indices[device as usize] = at as u64 / inner % self.parts[dim];
        }
        indices
    }

    /// Groups of devices whose parts differ in their index along dimension `dim` alone, each in the order of that index.
    pub fn groups_along(&self, dim: usize) -> Vec<Vec<u32>> {
        let (inner, count) = (self.inner_count(dim) as usize, self.parts[dim] as usize);
        let starts = (0..self.devices.len()).filter(|at| at / inner % count == 0);
        starts.map(|at| (0..count).map(|i| self.devices[at + i * inner]).collect()).collect()
    }

    /// Sharding under which device `d` has the part of index `dims[i].1[d]` of the `dims[i].0` parts along each dimension `i`; `None` where
    /// parts are not on equally many devices.
    pub fn from_part_indices(dims: &[(u64, Vec<u64>)], count: usize) -> Option<Sharding> {
        let part_of = |device: usize| dims.iter().fold(0, |at, (parts, indices)| at * parts + indices[device]);
        let mut devices: Vec<u32> = (0..count as u32).collect();
        devices.sort_by_key(|&device| part_of(device as usize));
        let parts = product(dims.iter().map(|dim| dim.0))?;
        let copies = count as u64 / parts;
        let is_even = |(at, &device): (usize, &u32)| {
            part_of(device as usize) * copies <= at as u64 && (at as u64) < (part_of(device as usize) + 1) * copies
        };
        let fits = copies * parts == count as u64 && devices.iter().enumerate().all(is_even);
        fits.then(|| Sharding { parts: dims.iter().map(|dim| dim.0).collect(), partial_sums: 1, devices })
    }

    /// Groups of devices that must combine what they computed for one part of a result. Each has a device for every part along the `folded`
    /// dimensions (given as for [`Sharding::from_part_indices`]), and its devices are of one class (as for [`Sharding::with_copies_ordered_by_device_class`]).
    /// `None` where these parts are not on equally many devices of each class.
    pub fn reduction_groups(&self, folded: &[(u64, Vec<u64>)], classes: &[u64]) -> Option<Vec<Vec<u32>>> {
        let copies = self.copies();
        let members = product(folded.iter().map(|dim| dim.0))? as usize;
        let index_of =
            |device: u32| folded.iter().fold(0, |at, (parts, indices)| at * parts + indices[device as usize]);
        let mut groups = Vec::new();
        for same in self.devices.chunks(copies.max(1)) {
            if same.len() % members != 0 {
                return None;
            }
            let own = same.len() / members;
            let mut sorted = same.to_vec();
            let class = |device: u32| classes.get(device as usize);
            sorted.sort_by_key(|&device| (index_of(device), class(device), device));
            let fits =
                |at: usize| index_of(sorted[at]) as usize == at / own && class(sorted[at]) == class(sorted[at % own]);
            if !(0..sorted.len()).all(fits) {
                return None;
            }
            groups.extend((0..own).map(|i| (0..members).map(|part| sorted[part * own + i]).collect()));
        }
        Some(groups)
    }

    /// Number of devices between those whose part index along `dim` differs by one.
    fn inner_count(&self, dim: usize) -> u64 {
        self.parts[dim + 1..].iter().product::<u64>() * self.partial_sums * self.copies() as u64
    }
}

impl fmt::Display for Sharding {
    /// Writes HLO's notation, with devices as a list.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_replicated() {
            return write!(f, "{{replicated}}");
        }
        let text = |all: &mut dyn Iterator<Item = u64>| all.map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let last = [(self.partial_sums, "unreduced"), (self.copies() as u64, "replicated")];
        let last: Vec<(u64, &str)> = last.into_iter().filter(|(count, _)| *count > 1).collect();
        let tiles = text(&mut self.parts.iter().copied().chain(last.iter().map(|own| own.0)));
        let devices = text(&mut self.devices.iter().map(|&id| id.into()));
        let kinds: Vec<&str> = last.iter().map(|own| own.1).collect();
        let kind = match kinds[..] {
            [] => String::new(),
            ["replicated"] => " last_tile_dim_replicate".to_string(),
            _ => format!(" last_tile_dims={{{}}}", kinds.join(", ")),
        };
        write!(f, "{{devices=[{tiles}]{devices}{kind}}}")
    }
}

/// Elements of a list that is separated by commas, without the empty ones.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    list(text).map(|n| n.parse().ok().filter(|&n| n <= MOST_DEVICES)).collect()
}

fn unquote(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// Contents of the braces in a text such as `{"i"}, {}`.
fn braces(text: &str) -> Option<Vec<&str>> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (inside, after) = rest.strip_prefix('{')?.split_once('}')?;
        all.push(inside);
        // A priority may follow: `{"i"}p0`.
        rest = after.find('{').map_or("", |at| &after[at..]);
    }
    Some(all)
}

/// Product of sizes; `None` where it is zero or above the limit of devices.
fn product(mut sizes: impl Iterator<Item = u64>) -> Option<u64> {
    sizes.try_fold(1u64, |n, size| n.checked_mul(size).filter(|n| (1..=MOST_DEVICES).contains(n)))
}

fn is_permutation(all: &[u32], count: u64) -> bool {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    all.len() as u64 == count && sorted.into_iter().eq(0..count as u32)
}

/// Elements of a row-major array of these sizes, with its axes in another order.
fn transposed(all: &[u32], sizes: &[u64], order: &[usize]) -> Vec<u32> {
    let stride = |axis: usize| sizes[axis + 1..].iter().product::<u64>();
    let mut at = vec![0u64];
    for &axis in order {
        at = at.iter().flat_map(|&base| (0..sizes[axis]).map(move |i| base + i * stride(axis))).collect();
    }
    at.into_iter().map(|i| all[i as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meshes() -> Meshes {
        [("mesh".to_string(), Mesh::parse("<[\"i\"=2, \"j\"=3]>").expect("a mesh"))].into_iter().collect()
    }

    #[test]
    fn both_notations_say_the_same() {
        for (shardy, hlo) in [
            ("<@mesh, [{\"i\"}, {\"j\"}]>", "{devices=[2,3]<=[6]}"),
            ("<@mesh, [{\"j\"}, {}]>", "{devices=[3,1,2]<=[2,3]T(1,0) last_tile_dim_replicate}"),
            ("<@mesh, [{}, {\"j\", \"i\", ?}]>", "{devices=[1,6]<=[2,3]T(1,0)}"),
            ("<@mesh, [{}, {?}]>", "{replicated}"),
        ] {
            let (a, b) = (Sharding::parse_shardy(shardy, &meshes(), None), Sharding::parse_hlo(hlo, 2, 6));
            let a = a.expect(shardy);
            if !a.is_replicated() {
                assert_eq!(Some(&a), b.as_ref(), "{shardy}");
            }
            assert_eq!(Sharding::parse_hlo(&a.to_string(), 2, 6).map(|s| s.parts), Some(a.parts), "{shardy}");
        }
    }

    #[test]
    fn parts_and_groups_agree() {
        let sharding = Sharding::parse_shardy("<@mesh, [{\"j\"}, {\"i\"}]>", &meshes(), None).expect("a sharding");
        assert_eq!(sharding.part_dims(&[6, 8]), Some(vec![2, 4]));
        assert_eq!(sharding.part_dims(&[7, 8]), None);
        assert_eq!(sharding.part_indices(0), [0, 1, 2, 0, 1, 2]);
        assert_eq!(sharding.part_indices(1), [0, 0, 0, 1, 1, 1]);
        assert_eq!(sharding.groups_along(0), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(sharding.groups_along(1), [[0, 3], [1, 4], [2, 5]]);
    }

    #[test]
    fn shardings_follow_from_the_parts_that_devices_have() {
        let sharding = Sharding::parse_shardy("<@mesh, [{\"j\"}, {\"i\"}]>", &meshes(), None).expect("a sharding");
        let dim = |i: usize| (sharding.parts[i], sharding.part_indices(i));
        assert_eq!(Sharding::from_part_indices(&[dim(0), dim(1)], 6).as_ref(), Some(&sharding));
        let rows = Sharding::from_part_indices(&[dim(0)], 6).expect("a sharding");
        assert_eq!(rows.to_string(), "{devices=[3,2]0,3,1,4,2,5 last_tile_dim_replicate}");
        assert_eq!(rows.reduction_groups(&[dim(1)], &[]), Some(vec![vec![0, 3], vec![1, 4], vec![2, 5]]));
        assert_eq!(Sharding::from_part_indices(&[dim(0), dim(0)], 6), None);
        assert_eq!(rows.reduction_groups(&[dim(0)], &[]), None);
    }

    #[test]
    fn devices_of_one_class_stay_together() {
        let mesh = Mesh::parse("<[\"x\"=2, \"y\"=2], device_ids=[0, 3, 2, 1]>").expect("a mesh");
        let meshes: Meshes = [("mesh".to_string(), mesh.clone())].into_iter().collect();
        let classes = mesh.indices_along(&["x".to_string()]);
        assert_eq!(classes, [0, 1, 1, 0]);
        let text = "<@mesh, [{\"x\", \"y\"}]>";
        let own = Sharding::parse_shardy(text, &meshes, Some(&["y".to_string()]))
            .and_then(|s| s.with_copies_ordered_by_device_class(&classes));
        let own = own.expect("a sharding");
        assert_eq!((own.parts[0], own.groups_along(0)), (2, vec![vec![0, 3], vec![2, 1]]));
        let whole = Sharding::from_part_indices(&[], 4)
            .and_then(|s| s.with_copies_ordered_by_device_class(&classes))
            .expect("a sharding");
        let groups = whole.reduction_groups(&[(2, own.part_indices(0))], &classes);
        assert_eq!(groups, Some(vec![vec![0, 3], vec![2, 1]]));
        assert_eq!(
            Sharding::parse_shardy(text, &meshes, None)
                .and_then(|s| s.with_copies_ordered_by_device_class(&[0, 0, 0, 1])),
            None
        );
    }

    #[test]
    fn damaged_texts_are_refused() {
        for text in [
            "",
            "<@other, [{}]>",
            "<@mesh, [{\"k\"}]>",
            "<@mesh, [{\"i\"}, {\"i\"}]>",
            "<@mesh, [{\"i\":(1)2}]>",
            "<@mesh, [{",
        ] {
            assert_eq!(Sharding::parse_shardy(text, &meshes(), None), None, "{text}");
        }
        for text in [
            "",
            "{devices=[2,2]<=[9]}",
            "{devices=[2]0,0}",
            "{maximal device=0}",
            "{devices=[4]<=[4]T(0,0)}",
            "{manual}",
        ] {
            assert_eq!(Sharding::parse_hlo(text, 1, 4), None, "{text}");
        }
        assert_eq!(Mesh::parse("<[\"i\"=2], device_ids=[1, 1]>"), None);
        assert!(Mesh::parse("<[\"i\"=2], device_ids=[1, 0]>").is_some());
    }
}
