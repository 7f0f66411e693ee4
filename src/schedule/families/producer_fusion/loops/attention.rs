//! The kernel of a block (`families/producer_fusion/recipe/attention.rs`): two products and the rows between them.
use crate::schedule::families::contraction::loops::ContractionNest;
use crate::schedule::families::contraction::loops::operands::Contraction;
use crate::schedule::families::contraction::loops::rows_in_local_memory::{LocalOperand, RowsInLocalMemory};
use crate::schedule::families::contraction::recipe::axis::{
    ContractionAxis, at_least_one_axis, extent_product, merge_axes,
};
use crate::schedule::families::contraction::recipe::register_tile::RegisterTile;
use crate::schedule::families::producer_fusion::recipe::Attention;
use crate::schedule::families::rows::loops as rows;
use crate::schedule::loops::grid::{bind_variable, guard_in_range};
use crate::schedule::loops::prelude::*;
use crate::target::LoopOrder;

impl<'a> Emitter<'a> {
    /// Emits the kernel of `id`, whose anchor is the dot `anchor`, with its left side computed block by block.
    pub(in crate::schedule) fn emit_attention(
        &mut self,
        KernelRoot { id, anchor, out }: KernelRoot<'_>,
        block: &Attention,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let mut e = self.start_kernel(id);
        let types = [comp.array_shape(block.scores).dtype, comp.array_shape(block.left).dtype];
        let from = self.allocate_on_stack(types[0], block.height * block.stride);
        let to =
            if types[0] == types[1] { from } else { self.allocate_on_stack(types[1], block.height * block.stride) };
        let first = self.scope.fusion.anchor[block.scores].unwrap_or(block.scores);
        let source = self.value_buffers(comp[first].operands[0])?.dense_buffer()?;
        let mut made = self.dot_contraction(first, source)?;
        made.c.rows = at_least_one_axis(merge_axes(&made.c.rows));
        let in_block = |e: &mut KernelBuilder, tile: RegisterTile| e.k.add_var(block.height / tile.wide);
        let number = in_block(&mut e, block.tiles[0]);
        let strip = RowsInLocalMemory {
            held: LocalOperand::Result(number),
            stride: block.stride,
            tile: block.tiles[0],
            form: None,
        };
        let sink = ValueBuffers { leaves: vec![from], layout: None };
        let place = |k: &Kernel, b: &Index, r: &Index, c: &Index| made.result_coordinates(k, b, r, c);
        let root = KernelRoot { id: block.scores, anchor: first, out: &sink };
        let make = self.emit_contraction_nest(&mut e, root, &made.c, Some(&strip), &place)?;
        e.forget_elements();

        let mut read = self.dot_contraction(anchor, to)?;
        read.c = from_block(&read.c, block);
        let reader = in_block(&mut e, block.tiles[1]);
        let strip = RowsInLocalMemory {
            held: LocalOperand::Left(reader),
            stride: block.stride,
            tile: block.tiles[1],
            form: None,
        };
        let place = |k: &Kernel, b: &Index, r: &Index, c: &Index| read.result_coordinates(k, b, r, c);
        let fold = self.emit_contraction_nest(&mut e, KernelRoot { id, anchor, out }, &read.c, Some(&strip), &place)?;
        e.forget_elements();

        let per_batch = extent_product(&made.c.rows);
        let blocks = AttentionBlocks::new(&mut e.k, make.grid.batch, fold.grid.batch, block.height, per_batch);
        let mut body = blocks.tiles(&mut e.k, make, number, block.tiles[0]);
        let mut e = self.block_rows(e, block, from, to, &blocks, &mut body)?;
        body.extend(blocks.tiles(&mut e.k, fold, reader, block.tiles[1]));
        blocks.close(&mut e.k, body);
        self.launch(e.k);
        Ok(())
    }

    /// Emits the row operations between the two products, for each row of a block.
    fn block_rows(
        &mut self,
        mut e: KernelBuilder,
        block: &Attention,
        from: BufId,
        to: BufId,
        blocks: &AttentionBlocks,
        body: &mut Vec<Stmt>,
    ) -> Result<KernelBuilder> {
        let (near, row) = (e.k.add_var(block.height), e.k.add_var(block.rows.rows));
        let at = Index::var(near).scale(block.stride as i64);
        let held = rows::RowBuffers { operand: block.scores, from, to, at };
        let out = ValueBuffers { leaves: vec![to], layout: None };
        let r = block.rows;
        let (mut e, inside) = self.emit_kernel_row(e, block.left, r, Index::var(row), &out, Some(&held))?;
        e.fixed.remove(&block.scores);
        let of_batch = blocks.first_row().add(&Index::var(near));
        let value = Index::var(blocks.batch).scale(blocks.rows as i64).add(&of_batch);
        let value = value.clamp_to(0, r.rows as i64 - 1, &e.k.vars);
        let inside = vec![Stmt::Let { var: row, value, body: inside }];
        let inside = guard_in_range(&mut e.k, &of_batch, 0, blocks.rows as i64, inside);
        body.push(for_loop(near, LoopKind::Seq, inside));
        Ok(e)
    }
}

/// The outer loops of an attention kernel, flattened into its chunks: blocks of rows, those of a batch one after another.
struct AttentionBlocks {
    /// Batch variables of the two products.
    batches: [VarId; 2],
    batch: VarId,
    block: VarId,
    /// Rows of a block.
    height: u64,
    /// Rows of a batch.
    rows: u64,
}

impl AttentionBlocks {
    fn new(k: &mut Kernel, a: VarId, b: VarId, height: u64, rows: u64) -> AttentionBlocks {
        let batch = k.add_var(k.vars[a]);
        AttentionBlocks { batches: [a, b], batch, block: k.add_var(rows.div_ceil(height)), height, rows }
    }

    /// The first row of the block in its batch.
    fn first_row(&self) -> Index {
        Index::var(self.block).scale(self.height as i64)
    }

    /// Wraps the body of `nest` in the loops over the tiles and panels of a block; `number` is the variable of the tile.
    fn tiles(&self, k: &mut Kernel, nest: ContractionNest, number: VarId, tile: RegisterTile) -> Vec<Stmt> {
        let at = Index::var(self.block).scale((self.height / tile.wide) as i64).add(&Index::var(number));
        let body = bind_variable(k, nest.grid.tile, at, nest.body);
        let loops = match nest.order {
            LoopOrder::Panels => [number, nest.grid.panel],
            LoopOrder::Rows => [nest.grid.panel, number],
        };
        loops.into_iter().fold(body, |body, v| vec![for_loop(v, LoopKind::Seq, body)])
    }

    /// Sets the kernel's body: `body`, with the variables of batch and block bound for each chunk.
    fn close(self, k: &mut Kernel, mut body: Vec<Stmt>) {
        let blocks = k.vars[self.block];
        let all = k.add_var(k.vars[self.batch] * blocks);
        let number = Index::var(all);
        for v in [self.batches[0], self.batches[1], self.batch] {
            let value = number.div(blocks as i64, &k.vars);
            body = vec![Stmt::Let { var: v, value, body }];
        }
        let value = number.rem(blocks as i64, &k.vars);
        k.body = vec![Stmt::Let { var: self.block, value, body }];
        k.chunks = Some(all);
    }
}

/// `c` with the left side read from a block of rows.
fn from_block(c: &Contraction, block: &Attention) -> Contraction {
    let batch = c.batch.iter().map(|x| ContractionAxis { a: 0, ..*x }).collect();
    let rows = vec![ContractionAxis { extent: extent_product(&c.rows), a: block.stride as i64, b: 0 }];
    Contraction { a0: 0, batch, rows, ..c.clone() }
}
