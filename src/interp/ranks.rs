//! Evaluation of collectives, from the values of all devices in a group.
use super::machine::Machine;
use super::operands::{Operands, invalid_hlo};
use super::rank::Rank;
use super::{apply, shape_ops};
use crate::diag::{Code, Error, Result};
use crate::hlo::attrs::{ForeignOp, SliceDim};
use crate::hlo::groups::{CollectiveGroups, is_collective, participating_ranks};
use crate::hlo::{ArrayShape, CompId, Literal, Shape};
use crate::tensor::Tensor;
use crate::util::meetings::MeetingError;

/// Value of a collective; `None` for other opcodes, and on a single device.
///
/// # Errors
/// `Code::SeveralDevices` if the module is for several devices, and none was given; those of [`participating_ranks`].
pub(super) fn collective(m: &Machine, f: &ForeignOp, operands: Operands, shape: &Shape) -> Result<Option<Literal>> {
    if !is_collective(&f.opcode) || m.module.devices() == [1, 1] {
        return Ok(None);
    }
    let Some(rank) = m.rank else {
        m.module.require_single_device()?;
        return Ok(None);
    };
    let own: Vec<Literal> = operands.0.iter().map(|&l| l.clone()).collect();
    match participating_ranks(f, rank.devices)? {
        CollectiveGroups::Pairs(pairs) => {
            let mut ends: Vec<u32> = pairs.iter().flatten().copied().collect();
            ends.sort_unstable();
            ends.dedup();
            let from = pairs.iter().find(|pair| pair[1] == rank.rank).map(|pair| pair[0]);
            received(rank, &ends, from, own).map(|values| Some(as_declared(values, shape)))
        }
        CollectiveGroups::Groups(groups) => {
            let group = groups.iter().find(|group| group.contains(&rank.rank));
            if f.opcode == "collective-broadcast" {
                let (group, from) = group.map_or((&[][..], None), |g| (&g[..], g.first().copied()));
                return received(rank, group, from, own).map(|values| Some(as_declared(values, shape)));
            }
            let group = group.ok_or_else(|| invalid_hlo("a device stands in no group"))?;
            let me = group.iter().position(|&r| r == rank.rank).unwrap_or(0);
            let all = met(rank, group, own)?;
            let whole = GroupOperands { m, f, all: &all, me };
            whole.value(shape).map(Some)
        }
    }
}

/// Values of all devices of a group, exchanged at a collective, in the order of the group.
fn met(rank: Rank, group: &[u32], own: Vec<Literal>) -> Result<Vec<Vec<Literal>>> {
    rank.meetings.exchange(rank.rank, group, own).map_err(|apart| {
        let told = match apart {
            MeetingError::Failed => "another rank failed",
            MeetingError::Waiting => "all ranks that are left wait for others, which are somewhere else in the module",
        };
        Error::user(Code::RankFailed, told)
    })
}

/// Values sent by device `from` of the group; zeros if the device sends nothing.
fn received(rank: Rank, group: &[u32], from: Option<u32>, own: Vec<Literal>) -> Result<Vec<Literal>> {
    let zeros = own.iter().map(zeros).collect();
    if !group.contains(&rank.rank) {
        return Ok(zeros);
    }
    let mut all = met(rank, group, own)?;
    let at = group.iter().position(|&r| Some(r) == from);
    Ok(at.map_or(zeros, |at| std::mem::take(&mut all[at])))
}

fn zeros(value: &Literal) -> Literal {
    match value {
        Literal::Array(t) => Literal::Array(Tensor::new(t.dtype, t.dims.clone(), vec![0; t.bytes.len()])),
        Literal::Tuple(parts) => Literal::Tuple(parts.iter().map(zeros).collect()),
        Literal::Token => Literal::Token,
    }
}

/// Results of a collective as the single value or the tuple that the instruction declares.
fn as_declared(mut values: Vec<Literal>, shape: &Shape) -> Literal {
    if values.len() == 1 && shape.as_tuple().is_none() { values.remove(0) } else { Literal::Tuple(values) }
}

/// Operands of all devices of a group; `me` is the position of this device.
struct GroupOperands<'a> {
    m: &'a Machine<'a>,
    f: &'a ForeignOp,
    all: &'a [Vec<Literal>],
    me: usize,
}

impl GroupOperands<'_> {
    fn value(&self, shape: &Shape) -> Result<Literal> {
        let split = self.f.attr("dimensions").is_some();
        let count = self.all.first().map_or(0, Vec::len);
        let parts = match self.f.opcode.as_str() {
            // Each operand goes to another device.
            "all-to-all" if !split => (0..count).map(|i| self.array(i, self.me).cloned()).collect(),
            _ => (0..count).map(|i| self.one(i)).collect::<Result<Vec<_>>>(),
        }?;
        Ok(as_declared(parts.into_iter().map(Literal::Array).collect(), shape))
    }

    /// Result of a collective for operand `i`.
    fn one(&self, i: usize) -> Result<Tensor> {
        let n = self.all.len();
        match self.f.opcode.as_str() {
            "all-reduce" => self.folded(i),
            "reduce-scatter" => part(&self.folded(i)?, self.axis()?, self.me, n),
            "all-gather" => {
                let all = (0..n).map(|at| self.array(at, i)).collect::<Result<Vec<_>>>()?;
                joint(&all, self.axis()?)
            }
            "all-to-all" => {
                let axis = self.axis()?;
                let cut = |at| part(self.array(at, i)?, axis, self.me, n);
                let all = (0..n).map(cut).collect::<Result<Vec<_>>>()?;
                joint(&all.iter().collect::<Vec<_>>(), axis)
            }
            other => Err(invalid_hlo(format!("`{other}` is no collective"))),
        }
    }

    /// Operand `i` of the device at position `at` of the group; all have the sizes of this device's.
    fn array(&self, at: usize, i: usize) -> Result<&Tensor> {
        let get = |at: usize| match self.all.get(at).and_then(|own| own.get(i)) {
            Some(Literal::Array(t)) => Ok(t),
            _ => Err(invalid_hlo(format!("operand {i} of a collective is no array"))),
        };
        let (theirs, mine) = (get(at)?, get(self.me)?);
        let fits = theirs.dtype == mine.dtype && theirs.dims == mine.dims;
        if fits { Ok(theirs) } else { Err(Error::user(Code::RankFailed, "a rank has an array of another size")) }
    }

    /// Reduction of operand `i` over all devices, in the order of the group.
    fn folded(&self, i: usize) -> Result<Tensor> {
        let comp: CompId = self.f.calls.first().ok_or_else(|| invalid_hlo("it calls nothing"))?.1;
        let mut sum = self.array(0, i)?.clone();
        for at in 1..self.all.len() {
            let next = self.array(at, i)?;
            let n = next.len();
            let flat = |t: &Tensor| t.with_dims(vec![n as u64]);
            let both = apply::apply_elementwise(self.m, comp, &[flat(&sum), flat(next)], n)?;
            sum =
                both.first().ok_or_else(|| invalid_hlo("its computation gives nothing"))?.with_dims(next.dims.clone());
        }
        Ok(sum)
    }

    fn axis(&self) -> Result<usize> {
        self.f.number("dimensions").ok_or_else(|| invalid_hlo("it names no dimension"))
    }
}

/// Part `at` of `n` equal parts along an axis.
fn part(t: &Tensor, axis: usize, at: usize, n: usize) -> Result<Tensor> {
    let size = *t.dims.get(axis).ok_or_else(|| invalid_hlo("its dimension is beyond the rank"))?;
    if size % n as u64 != 0 {
        return Err(invalid_hlo(format!("{size} elements do not divide into {n} parts")));
    }
    let each = size / n as u64;
    let box_of = |(i, &limit): (usize, &u64)| match i == axis {
        true => SliceDim { start: each * at as u64, limit: each * (at as u64 + 1), stride: 1 },
        false => SliceDim { start: 0, limit, stride: 1 },
    };
    Ok(shape_ops::slice(t, &t.dims.iter().enumerate().map(box_of).collect::<Vec<_>>()))
}

fn joint(all: &[&Tensor], axis: usize) -> Result<Tensor> {
    let first = all.first().ok_or_else(|| invalid_hlo("a group is empty"))?;
    let mut dims = first.dims.clone();
    *dims.get_mut(axis).ok_or_else(|| invalid_hlo("its dimension is beyond the rank"))? *= all.len() as u64;
    let Shape::Array(shape) = Shape::array(first.dtype, dims) else { return Err(invalid_hlo("it is no array")) };
    let shape: ArrayShape = shape;
    shape_ops::concatenate(all, &shape, axis)
}
