//! Operations that compute on shards: each device computes its part of the result from its parts of the operands.
//!
//! Every dimension along which an operand is divided is a dimension of the result, which is then divided in the same way, or is summed
//! over, which leaves each device with a part of the sum. Devices whose parts of the result are the same add these up. All other
//! operations, and those whose operands are divided in ways that do not fit, get whole arrays.
use super::sharding::Sharding;
use super::{Shard, uneven_error};
use crate::diag::{Code, Result};
use crate::hlo::schema;
use crate::hlo::stablehlo::attributes::{self, opcode};
use crate::hlo::stablehlo::converter::{Converter, SymbolScope, error_at};
use crate::hlo::stablehlo::tree::{MlirAttr, Operation, RegionBlock};
use crate::hlo::{InstId, Op, Shape, SymbolicArray, is_neutral};
use crate::scalar::ScalarOp;

/// Dimension of an operand: the index of the operand, and that of the dimension.
type OperandDim = (usize, usize);

/// How the dimensions of an operation's operands are related to those of its result.
struct DimFlow {
    /// For each dimension of the result, the dimension of an operand of which it has the elements one by one; `None` for others.
    kept: Vec<Option<OperandDim>>,
    /// Dimensions over which is summed, or reduced in another way.
    folded: Vec<OperandDim>,
    /// Dimensions of two operands whose elements are combined one by one.
    paired: Vec<[OperandDim; 2]>,
    /// Operation that combines partial results; addition for products.
    combiner: ScalarOp,
}

impl DimFlow {
    fn of_kept(kept: Vec<Option<OperandDim>>) -> DimFlow {
        DimFlow { kept, folded: Vec::new(), paired: Vec::new(), combiner: ScalarOp::Add }
    }
}

/// Shardings of an operation that computes on shards.
struct LocalForm {
    result: Sharding,
    /// Groups of devices that combine their partial results; empty where results are complete.
    groups: Vec<Vec<u32>>,
}

impl<'a> Converter<'a, '_> {
    /// Converts an operation to one on shards; `None` where no operand is a shard, and where it needs whole arrays.
    pub(in crate::hlo::stablehlo) fn convert_on_shards(
        &mut self,
        op: &'a Operation,
        operands: &[InstId],
        scope: &SymbolScope,
    ) -> Result<Option<Vec<InstId>>> {
        let [Shape::Array(declared)] = &op.types[..] else { return Ok(None) };
        let shards: Vec<Option<Shard>> = operands.iter().map(|&id| self.shard(id)).collect();
        let Some(first) = shards.iter().flatten().next().cloned() else { return Ok(None) };
        if shards.iter().flatten().any(|shard| shard.sharding.partial_sums > 1) {
            return Ok(None);
        }
        if is_elementwise(op) {
            let agree = shards.iter().flatten().all(|s| s.sharding == first.sharding && s.whole == declared.dims);
            return if agree { self.convert_elementwise(op, operands, &first, scope).map(Some) } else { Ok(None) };
        }
        let Some(flow) = self.dim_flow(op, operands)? else { return Ok(None) };
        let Some(form) = local_form(&flow, &shards, &self.device_classes) else { return Ok(None) };
        let Some(part) = form.result.part_dims(&declared.dims) else { return Ok(None) };
        let own = Operation { types: vec![Shape::array(declared.dtype, part)], ..op.clone() };
        let comps = op.regions.iter().map(|region| self.convert_closed_region(op, region, scope));
        let comps = comps.collect::<Result<Vec<_>>>()?;
        let mut made = self.single_instruction(&own, operands.to_vec(), &comps, scope)?;
        for id in &mut made {
            if !form.groups.is_empty() {
                *id = self.all_reduce(*id, flow.combiner, &form.groups);
            }
            if !form.result.is_replicated() {
                self.mark_shard(*id, Shard { sharding: form.result.clone(), whole: declared.dims.clone() });
            }
        }
        Ok(Some(made))
    }

    /// Converts an elementwise operation whose operands are shards of one sharding, scalars, and whole arrays, of which parts are taken.
    fn convert_elementwise(
        &mut self,
        op: &Operation,
        operands: &[InstId],
        shard: &Shard,
        scope: &SymbolScope,
    ) -> Result<Vec<InstId>> {
        let mut parts = Vec::with_capacity(operands.len());
        for &id in operands {
            parts.push(match self.shard(id).is_some() || self.builder().rank(id) == 0 {
                true => id,
                false => {
                    self.part_of(id, &shard.sharding).ok_or_else(|| uneven_error(&shard.sharding, &shard.whole))?
                }
            });
        }
        let types = op.types.iter().filter_map(Shape::as_array).map(|a| Shape::array(a.dtype, shard.dims())).collect();
        let own = Operation { types, ..op.clone() };
        let made = self.single_instruction(&own, parts, &[], scope)?;
        made.iter().for_each(|&id| self.mark_shard(id, shard.clone()));
        Ok(made)
    }

    /// How dimensions of an operation are related; `None` for operations that always get whole arrays.
    fn dim_flow(&mut self, op: &'a Operation, operands: &[InstId]) -> Result<Option<DimFlow>> {
        let ints = |names: &[&str]| op.attr(names).and_then(MlirAttr::ints).map(as_axes);
        let rank = op.types.first().and_then(Shape::as_array).map_or(0, |a| a.rank());
        Ok(match op.name.as_str() {
            "stablehlo.transpose" => ints(&["dims", "permutation"])
                .map(|perm| DimFlow::of_kept(perm.into_iter().map(|dim| Some((0, dim))).collect())),
            "stablehlo.broadcast_in_dim" => ints(&["dims", "broadcast_dimensions"]).map(|dims| {
                DimFlow::of_kept((0..rank).map(|d| Some((0, dims.iter().position(|&at| at == d)?))).collect())
            }),
            // Blocks of rows are blocks of elements, whatever sizes the rows have.
            "stablehlo.reshape" if rank > 0 => {
                Some(DimFlow::of_kept((0..rank).map(|d| (d == 0).then_some((0, 0))).collect()))
            }
            "stablehlo.reduce" => ints(&["dimensions"]).and_then(|dims| self.reduction_flow(op, operands, dims)),
            "stablehlo.dot_general" | "stablehlo.convolution" => self.product_flow(op, operands)?,
            _ => None,
        })
    }

    /// Dimensions of a reduction by an operation whose neutral element is the initial value.
    fn reduction_flow(&mut self, op: &Operation, operands: &[InstId], dims: Vec<usize>) -> Option<DimFlow> {
        let (&[x, init], [region]) = (operands, &op.regions[..]) else { return None };
        let combiner = combiner_of(region)?;
        let known = SymbolicArray::from_constant(self.builder(), init)?;
        if !is_neutral(combiner, &known.value) {
            return None;
        }
        let rank = self.builder().rank(x);
        let kept = (0..rank).filter(|d| !dims.contains(d)).map(|d| Some((0, d))).collect();
        Some(DimFlow { folded: dims.into_iter().map(|d| (0, d)).collect(), combiner, ..DimFlow::of_kept(kept) })
    }

    /// Dimensions of a product of matrices, or of a convolution along its batch.
    fn product_flow(&mut self, op: &Operation, operands: &[InstId]) -> Result<Option<DimFlow>> {
        let refuse = |message: String| error_at(op, Code::HloUnsupported, message);
        let Some(name) = opcode(&op.name) else { return Ok(None) };
        // Attributes depend on the sizes of a convolution's kernel, which is whole where a batch is divided.
        let shapes: Vec<Shape> = operands.iter().map(|&id| self.builder().shape(id).pin_sizes()).collect();
        let ranks: Vec<usize> = operands.iter().map(|&id| self.builder().rank(id)).collect();
        let shapes: Vec<&Shape> = shapes.iter().collect();
        let Ok(mut attrs) = attributes::convert_attributes(op, &name, &shapes, &[]) else { return Ok(None) };
        let declared = op.types.first().cloned();
        Ok(match schema::op(&name, &declared, &shapes, &mut attrs).map_err(refuse)? {
            Op::Dot(dims) => {
                let pairs = |left: &[usize], right: &[usize]| -> Vec<[OperandDim; 2]> {
                    left.iter().zip(right).map(|(&l, &r)| [(0, l), (1, r)]).collect()
                };
                let (batch, contracted) =
                    (pairs(&dims.lhs_batch, &dims.rhs_batch), pairs(&dims.lhs_contracting, &dims.rhs_contracting));
                let free = |i: usize, batch: &[usize], folded: &[usize]| -> Vec<Option<OperandDim>> {
                    (0..ranks[i]).filter(|d| !batch.contains(d) && !folded.contains(d)).map(|d| Some((i, d))).collect()
                };
                let mut kept: Vec<Option<OperandDim>> = batch.iter().map(|pair| Some(pair[0])).collect();
                kept.extend(free(0, &dims.lhs_batch, &dims.lhs_contracting));
                kept.extend(free(1, &dims.rhs_batch, &dims.rhs_contracting));
                let folded = contracted.iter().map(|pair| pair[0]).collect();
                Some(DimFlow { folded, paired: [batch, contracted].concat(), ..DimFlow::of_kept(kept) })
            }
            Op::Convolution(dims) if dims.batch_group_count == 1 => {
                let rank = 2 + dims.output_spatial.len();
                let kept = (0..rank).map(|d| (d == dims.output_batch).then_some((0, dims.input_batch))).collect();
                Some(DimFlow::of_kept(kept))
            }
            _ => None,
        })
    }
}

fn is_elementwise(op: &Operation) -> bool {
    let name = op.name.strip_prefix("stablehlo.").unwrap_or_default().replace('_', "-");
    op.regions.is_empty() && (ScalarOp::parse(&name).is_some() || matches!(name.as_str(), "compare" | "convert"))
}

fn as_axes(ints: Vec<i64>) -> Vec<usize> {
    ints.into_iter().map(|axis| usize::try_from(axis).unwrap_or(usize::MAX)).collect()
}

/// The commutative operation that a reducer applies to its two arguments; `None` for other reducers.
fn combiner_of(region: &RegionBlock) -> Option<ScalarOp> {
    let ([(a, _), (b, _)], [apply, end]) = (&region.args[..], &region.ops[..]) else { return None };
    let reads = |op: &Operation, names: &[&String]| op.operands.iter().map(|v| &v.name).eq(names.iter().copied());
    let is_plain = reads(apply, &[a, b]) && end.is_return() && reads(end, &[apply.results.first()?]);
    let op = match apply.name.as_str() {
        "stablehlo.add" => ScalarOp::Add,
        "stablehlo.multiply" => ScalarOp::Multiply,
        "stablehlo.maximum" => ScalarOp::Maximum,
        "stablehlo.minimum" => ScalarOp::Minimum,
        "stablehlo.and" => ScalarOp::And,
        "stablehlo.or" => ScalarOp::Or,
        _ => return None,
    };
    is_plain.then_some(op)
}

/// Shardings under which an operation computes on its operands' shards; `None` where they do not fit.
fn local_form(flow: &DimFlow, shards: &[Option<Shard>], classes: &[u64]) -> Option<LocalForm> {
    let parts = |&(i, dim): &OperandDim| match shards.get(i)? {
        Some(shard) => shard.sharding.parts.get(dim).copied(),
        None => Some(1),
    };
    let indices = |&(i, dim): &OperandDim| shards[i].as_ref().map(|shard| shard.sharding.part_indices(dim));
    for [left, right] in &flow.paired {
        let is_divided = parts(left)? > 1 || parts(right)? > 1;
        if is_divided && (parts(left) != parts(right) || indices(left) != indices(right)) {
            return None;
        }
    }
    // Each dimension that is divided must be one of these.
    for (i, shard) in shards.iter().enumerate() {
        let Some(shard) = shard else { continue };
        for dim in (0..shard.sharding.parts.len()).filter(|&dim| shard.sharding.parts[dim] > 1) {
            let at = (i, dim);
            let is_known = flow.kept.contains(&Some(at)) || flow.folded.contains(&at);
            if !is_known && !flow.paired.iter().any(|pair| pair.contains(&at)) {
                return None;
            }
        }
    }
    let count = shards.iter().flatten().next()?.sharding.device_count();
    let of = |at: &Option<OperandDim>| match at {
        Some(at) => Some((parts(at)?, indices(at).unwrap_or_else(|| vec![0; count]))),
        None => Some((1, vec![0; count])),
    };
    let kept = flow.kept.iter().map(of).collect::<Option<Vec<_>>>()?;
    let folded = flow.folded.iter().map(|at| of(&Some(*at))).collect::<Option<Vec<_>>>()?;
    let result = Sharding::from_part_indices(&kept, count)?.with_copies_ordered_by_device_class(classes)?;
    let is_folded = folded.iter().any(|(parts, _)| *parts > 1);
    let groups = if is_folded { result.reduction_groups(&folded, classes)? } else { Vec::new() };
    Some(LocalForm { result, groups })
}
