//! Blocks of sums by AMX. Of its eight registers the first four are the sums, then come two tiles of the left side and two of the
//! right one.
use super::function::{FunctionEmitter, TileRegisterShapes};
use crate::diag::Result;
use crate::kernel::{BufId, Index, TileSums, VarId};
use crate::target::tiles::COLUMNS;
use crate::tensor::DType;

/// Number of the AMX register of the left side's first tile.
const LEFT: usize = 4;
/// Number of the AMX register of the right side's first tile.
const RIGHT: usize = 6;

impl FunctionEmitter<'_> {
    /// Emits a block of sums by AMX tile instructions.
    pub(super) fn emit_tile_sums(&mut self, sums: &TileSums) -> Result<()> {
        self.shape(shapes(sums));
        for (tile, at) in places(sums) {
            match sums.adds {
                true => self.tile("tileloadd64", tile, sums.to, &at, sums.columns())?,
                false => self.push_line(&format!("call void @llvm.x86.tilezero(i8 {tile})")),
            }
        }
        self.tile_rounds(&sums.loops, sums)?;
        places(sums)
            .into_iter()
            .try_for_each(|(tile, at)| self.tile("tilestored64", tile, sums.to, &at, sums.columns()))
    }

    /// Emits the loops over the terms, with the products of tiles inside.
    fn tile_rounds(&mut self, loops: &[VarId], sums: &TileSums) -> Result<()> {
        if let [first, inner @ ..] = loops {
            return self.emit_iterations(*first, &mut |f| f.tile_rounds(inner, sums));
        }
        for (i, row) in sums.rows.iter().enumerate() {
            self.tile("tileloadd64", LEFT + i, sums.left, &row.first, row.stride)?;
        }
        let across = 0..sums.across as usize;
        for j in across.clone() {
            let first = sums.first.offset((COLUMNS * sums.product.terms_per_word()) as i64 * j as i64);
            self.tile("tileloadd64", RIGHT + j, sums.right, &first, sums.stride)?;
        }
        for (i, j) in (0..sums.rows.len()).flat_map(|i| across.clone().map(move |j| (i, j))) {
            let (sum, left, right) = (2 * i + j, LEFT + i, RIGHT + j);
            let multiply = sums.product.instruction();
            self.push_line(&format!("call void @llvm.x86.{multiply}(i8 {sum}, i8 {left}, i8 {right})"));
        }
        Ok(())
    }

    /// Emits the load or store (`how`) of a tile whose rows are `stride` elements apart.
    fn tile(&mut self, how: &str, tile: usize, buf: BufId, first: &Index, stride: u64) -> Result<()> {
        let at = self.address(buf, first)?;
        let bytes = stride * self.dtype_of(buf).bytes() as u64;
        self.push_line(&format!("call void @llvm.x86.{how}(i8 {tile}, ptr {at}, i64 {bytes})"));
        Ok(())
    }

    /// Emits the configuration of the tile registers, unless a previous block left the same one; `%tiles` holds its number.
    fn shape(&mut self, shapes: TileRegisterShapes) {
        let known = self.shapes.iter().position(|s| *s == shapes);
        let number = known.unwrap_or_else(|| {
            self.shapes.push(shapes);
            self.shapes.len() - 1
        });
        let has = self.push_instruction("load i32, ptr %tiles", DType::S32, 1);
        let others = self.push_instruction(&format!("icmp ne i32 {}, {}", has.text, number + 1), DType::Pred, 1);
        let (new, done) = (self.fresh_label(), self.fresh_label());
        self.push_line(&format!("br i1 {}, label %{new}, label %{done}", others.text));
        self.begin_block(&new);
        self.push_line(&format!("store <8 x i64> <{}>, ptr %shapes, align 64", words(&shapes).join(", ")));
        self.push_line("call void @llvm.x86.ldtilecfg(ptr %shapes)");
        self.push_line(&format!("store i32 {}, ptr %tiles", number + 1));
        self.push_line(&format!("br label %{done}"));
        self.begin_block(&done);
    }
}

/// The registers of the sums, each with the index of its first element in memory.
fn places(sums: &TileSums) -> Vec<(usize, Index)> {
    let (mut all, mut row) = (Vec::new(), 0);
    for (i, tile) in sums.rows.iter().enumerate() {
        for j in 0..sums.across {
            all.push((2 * i + j as usize, sums.at.offset((row * sums.columns() + 16 * j) as i64)));
        }
        row += tile.count;
    }
    all
}

/// The register shapes for two tiles side by side, which serve a single tile too.
fn shapes(sums: &TileSums) -> TileRegisterShapes {
    let mut all = TileRegisterShapes::default();
    let words = sums.terms / sums.product.terms_per_word();
    for (i, row) in sums.rows.iter().enumerate() {
        all[LEFT + i] = (row.count, 4 * words);
        all[2 * i..2 * i + 2].fill((row.count, 64));
    }
    all[RIGHT..].fill((words, 64));
    all
}

/// The 64 bytes that `ldtilecfg` reads, as words (Intel's manual, volume 1, chapter 18): the number of the palette, from byte 16 on the bytes
/// of a row of each register in two bytes, from byte 48 on their rows in one.
fn words(shapes: &TileRegisterShapes) -> Vec<String> {
    let mut bytes = [0u8; 64];
    bytes[0] = 1;
    for (i, &(rows, row)) in shapes.iter().enumerate() {
        bytes[16 + 2 * i..18 + 2 * i].copy_from_slice(&(row as u16).to_le_bytes());
        bytes[48 + i] = rows as u8;
    }
    bytes.as_chunks::<8>().0.iter().map(|&word| format!("i64 {}", i64::from_le_bytes(word))).collect()
}
