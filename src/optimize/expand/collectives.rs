//! Collectives of several devices, written with the few forms that a communicator has: `all-gather` and `all-to-all` of whole blocks
//! along dimension 0, and `collective-permute` and `collective-broadcast` of one array.
//!
//! What is added is added here, in the order of the group, so that results do not depend on who comes first. A large `all-reduce`
//! sums a part on each device and gathers the parts: a device sends its array twice, however many there are. A small one gathers all.
use crate::diag::{Code, Error, Result};
use crate::hlo::attrs::{ForeignOp, PadDim, SliceDim};
use crate::hlo::groups::{CollectiveGroups, Devices, format_groups, is_collective, participating_ranks};
use crate::hlo::{InstId, Module, Op, Shape};
use crate::optimize::rewrite::{Changed, Editor, rewrite};
use crate::tensor::{DType, Tensor};

/// Largest array in bytes that is gathered whole before it is summed, as one message costs more than its bytes then.
const SMALL_BYTES: u64 = 4096;

/// Rewrites the collectives of a module for several devices as those that communicators implement.
///
/// Errors: `Code::HloInvalid` for groups that are none, `Code::HloUnsupported` for collectives of other forms.
pub fn expand(module: &mut Module) -> Result<Changed> {
    if module.devices() == [1, 1] {
        return Ok(Changed::No);
    }
    let devices = Devices::new(module.devices())?;
    rewrite(module, |editor, id| match editor.op(id).clone() {
        Op::Foreign(f) if is_collective(&f.opcode) => expand_collective(editor, id, &f, devices),
        Op::Foreign(f) if f.opcode.strip_suffix("-start").is_some_and(is_collective) => {
            let told = format!("`{}` among several devices", f.opcode);
            Err(Error::user(Code::HloUnsupported, told))
        }
        _ => Ok(None),
    })
}

fn expand_collective(editor: &mut Editor, id: InstId, f: &ForeignOp, devices: Devices) -> Result<Option<InstId>> {
    let operands = editor.operands(id).to_vec();
    let dimension = f.number("dimensions");
    let is_canonical = match f.opcode.as_str() {
        "all-gather" | "all-to-all" => dimension == Some(0),
        "collective-permute" | "collective-broadcast" => true,
        _ => false,
    };
    let is_one = operands.len() == 1 && editor.shape(id).as_array().is_some();
    let groups = match participating_ranks(f, devices)? {
        CollectiveGroups::Groups(groups) => groups,
        CollectiveGroups::Pairs(_) => Vec::new(),
    };
    let size = groups.first().map_or(0, Vec::len) as u64;
    if is_canonical && is_one && size != 1 {
        return Ok(None);
    }
    if f.opcode == "collective-broadcast" && size == 1 {
        return Ok(None);
    }
    if operands.iter().any(|&o| editor.array(o).is_none()) {
        return Err(Error::user(Code::HloUnsupported, format!("`{}` of what is no array", f.opcode)));
    }
    let mut w = CollectiveWriter { editor, f, groups: &groups, size };
    if f.opcode == "all-to-all" && dimension.is_none() {
        return w.parts_to_all(&operands).map(Some);
    }
    let is_tuple = w.editor.shape(id).as_tuple().is_some();
    let mut results = Vec::with_capacity(operands.len());
    for x in operands {
        results.push(match (f.opcode.as_str(), dimension) {
            ("collective-permute" | "collective-broadcast", _) => w.add_same_shape(&f.opcode, x),
            _ if size == 1 => x,
            ("all-reduce", _) => w.all_reduce(x)?,
            ("all-gather", Some(axis)) => w.all_gather(x, axis)?,
            ("reduce-scatter", Some(axis)) => {
                let parts = w.split_axis(x, axis)?;
                let parts = w.all_to_all(parts);
                w.sum(parts)?
            }
            ("all-to-all", Some(axis)) => {
                let parts = w.split_axis(x, axis)?;
                let parts = w.all_to_all(parts);
                w.merge_axis(parts, axis)?
            }
            _ => return Err(Error::user(Code::HloInvalid, format!("`{}` without a dimension", f.opcode))),
        });
    }
    if is_tuple {
        return w.editor.add_instruction(Op::Tuple, &results).map(Some);
    }
    Ok(results.first().copied())
}

struct CollectiveWriter<'e, 'm> {
    editor: &'e mut Editor<'m>,
    f: &'e ForeignOp,
    groups: &'e [Vec<u32>],
    /// Devices in a group.
    size: u64,
}

impl CollectiveWriter<'_, '_> {
    /// Adds a collective among the same devices. If a channel says what numbers mean, an `all-to-all` would interpret the groups of an
    /// `all-reduce` differently: then they are written as device numbers.
    fn add_collective(&mut self, opcode: &str, x: InstId, shape: Shape) -> InstId {
        const GROUPS: &[&str] = &["replica_groups", "source_target_pairs", "channel_id", "use_global_device_ids"];
        let own = |a: &&(String, String)| GROUPS.contains(&a.0.as_str());
        let mut attrs: Vec<(String, String)> = self.f.attrs.iter().filter(own).cloned().collect();
        if opcode.starts_with("all-") && self.f.attr("channel_id").is_some() {
            let named = |name: &str, value: &str| (name.to_string(), value.to_string());
            let groups = named("replica_groups", &format_groups(self.groups));
            attrs = vec![groups, named("channel_id", "1"), named("use_global_device_ids", "true")];
        }
        if opcode.starts_with("all-") {
            attrs.push(("dimensions".to_string(), "{0}".to_string()));
        }
        let call = ForeignOp { opcode: opcode.to_string(), attrs, calls: Vec::new() };
        self.editor.add_instruction_with_shape(Op::Foreign(Box::new(call)), &[x], shape)
    }

    fn add_same_shape(&mut self, opcode: &str, x: InstId) -> InstId {
        let shape = self.array_shape(x, self.editor.dims(x).to_vec());
        self.add_collective(opcode, x, shape)
    }

    fn array_shape(&self, x: InstId, dims: Vec<u64>) -> Shape {
        Shape::array(self.editor.dtype(x).unwrap_or(DType::F32), dims)
    }

    /// An `all-to-all`, `[n, ...]`: block `i` of the result comes from device `i` of the group.
    fn all_to_all(&mut self, parts: InstId) -> InstId {
        self.add_same_shape("all-to-all", parts)
    }

    /// An `all-gather`, `[n, dims of x]`: the values of all devices of the group.
    fn gather_blocks(&mut self, x: InstId) -> InstId {
        let mut dims = self.editor.dims(x).to_vec();
        dims.insert(0, 1);
        let block = self.editor.add_reshape(x, &dims);
        dims[0] = self.size;
        let shape = self.array_shape(x, dims);
        self.add_collective("all-gather", block, shape)
    }

    /// Splits an axis: `[a, n·b, c]` becomes `[n, a, b, c]`.
    fn split_axis(&mut self, x: InstId, axis: usize) -> Result<InstId> {
        let mut dims = self.editor.dims(x).to_vec();
        let Some(all) = dims.get_mut(axis).filter(|d| d.is_multiple_of(self.size)) else {
            let told = format!("`{}` does not divide into {} parts", self.f.opcode, self.size);
            return Err(Error::user(Code::HloInvalid, told));
        };
        *all /= self.size;
        dims.insert(axis, self.size);
        let parts = self.editor.add_reshape(x, &dims);
        let mut perm: Vec<usize> = (0..dims.len()).filter(|&d| d != axis).collect();
        perm.insert(0, axis);
        self.transpose(parts, perm)
    }

    /// Merges the first axis into another: `[n, a, b, c]` becomes `[a, n·b, c]`.
    fn merge_axis(&mut self, parts: InstId, axis: usize) -> Result<InstId> {
        let mut dims = self.editor.dims(parts)[1..].to_vec();
        let mut perm: Vec<usize> = (1..=dims.len()).collect();
        perm.insert(axis, 0);
        let turned = self.transpose(parts, perm)?;
        dims[axis] *= self.size;
        Ok(self.editor.add_reshape(turned, &dims))
    }

    fn transpose(&mut self, x: InstId, perm: Vec<usize>) -> Result<InstId> {
        if perm.is_sorted() { Ok(x) } else { self.editor.add_instruction(Op::Transpose(perm), &[x]) }
    }

    fn all_gather(&mut self, x: InstId, axis: usize) -> Result<InstId> {
        let all = self.gather_blocks(x);
        self.merge_axis(all, axis)
    }

    fn all_reduce(&mut self, x: InstId) -> Result<InstId> {
        let (dims, n) = (self.editor.dims(x).to_vec(), self.editor.element_count(x));
        let bytes = self.editor.array(x).map_or(0, |a| a.bytes());
        if n == 0 {
            return Ok(x);
        }
        if bytes <= SMALL_BYTES {
            let all = self.gather_blocks(x);
            return self.sum(all);
        }
        let each = n.div_ceil(self.size);
        let mut flat = self.editor.add_reshape(x, &[n]);
        let behind = (each * self.size - n) as i64;
        if behind > 0 {
            let dtype = self.editor.dtype(x).unwrap_or(DType::F32);
            let zero = self.editor.add_constant(Tensor::scalar_from_f64(dtype, 0.0));
            flat = self
                .editor
                .add_instruction(Op::Pad(vec![PadDim { low: 0, high: behind, interior: 0 }]), &[flat, zero])?;
        }
        let parts = self.editor.add_reshape(flat, &[self.size, each]);
        let parts = self.all_to_all(parts);
        let sum = self.sum(parts)?;
        let all = self.gather_blocks(sum);
        let mut all = self.editor.add_reshape(all, &[self.size * each]);
        if behind > 0 {
            all = self.editor.add_instruction(Op::Slice(vec![SliceDim { start: 0, limit: n, stride: 1 }]), &[all])?;
        }
        Ok(self.editor.add_reshape(all, &dims))
    }

    /// The blocks of `[n, ...]` combined from the first to the last.
    fn sum(&mut self, parts: InstId) -> Result<InstId> {
        let Some(&(_, comp)) = self.f.calls.first() else {
            return Err(Error::user(Code::HloInvalid, format!("`{}` has no computation", self.f.opcode)));
        };
        let op = self.editor.module().comps[comp].as_fold().and_then(|fold| fold.op());
        let dims = self.editor.dims(parts)[1..].to_vec();
        let mut sum = self.block(parts, 0)?;
        for i in 1..self.size {
            let next = self.block(parts, i)?;
            sum = match op {
                Some(op) => self.editor.add_instruction(Op::Elementwise(op), &[sum, next])?,
                None => {
                    let map = Op::Map { comp, dims: (0..self.editor.dims(sum).len()).collect() };
                    self.editor.add_instruction(map, &[sum, next])?
                }
            };
        }
        Ok(self.editor.add_reshape(sum, &dims))
    }

    /// Block `i` of `[n, ...]`, as one row.
    fn block(&mut self, parts: InstId, i: u64) -> Result<InstId> {
        let each = self.editor.element_count(parts) / self.size;
        let rows = self.editor.add_reshape(parts, &[self.size, each]);
        let row = vec![SliceDim { start: i, limit: i + 1, stride: 1 }, SliceDim { start: 0, limit: each, stride: 1 }];
        let row = self.editor.add_instruction(Op::Slice(row), &[rows])?;
        Ok(self.editor.add_reshape(row, &[each]))
    }

    /// A collective that sends operand `i` to device `i` of the group.
    fn parts_to_all(&mut self, operands: &[InstId]) -> Result<InstId> {
        let dims = self.editor.dims(operands[0]).to_vec();
        if operands.len() as u64 != self.size {
            let told = format!("{} operands in groups of {}", operands.len(), self.size);
            return Err(Error::user(Code::HloInvalid, format!("`{}`: {told}", self.f.opcode)));
        }
        let block = [&[1], &dims[..]].concat();
        let blocks: Vec<InstId> = operands.iter().map(|&o| self.editor.add_reshape(o, &block)).collect();
        let parts =
            if self.size == 1 { blocks[0] } else { self.editor.add_instruction(Op::Concatenate(0), &blocks)? };
        let parts = if self.size == 1 { parts } else { self.all_to_all(parts) };
        let mut results = Vec::new();
        for i in 0..self.size {
            let row = self.block(parts, i)?;
            results.push(self.editor.add_reshape(row, &dims));
        }
        self.editor.add_instruction(Op::Tuple, &results)
    }
}
