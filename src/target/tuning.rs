//! Choices for the loops of products that were measured, and take the place of what the model of costs chooses.
//!
//! As text, a line a product: the processor, the type, what the product is, what was chosen; and a line a convolution that can be
//! done in two ways. Everything behind `#` is for people. Rows of other processors and products do no harm: they are for other graphs and machines.
use crate::diag::{Code, Diagnostic, Result};
use std::collections::BTreeMap;
use std::fmt;

/// The first line of a tuning file.
const HEAD: &str = "# tfaot tuning 1";

/// Register tile and loop order chosen for a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileChoice {
    /// Rows of the register tile along the last axis but one.
    pub high: u64,
    /// Rows of the register tile along the last axis.
    pub wide: u64,
    /// Number of vectors of columns.
    pub vectors: u64,
    /// Columns of a vector.
    pub lanes: u64,
    /// Order of the loops around the tile.
    pub order: LoopOrder,
}

/// The algorithm of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvolutionMethod {
    /// Direct: one sum over the window and the channels.
    Direct,
    /// Winograd's F(4x4, 3x3).
    Winograd,
}

/// The order of the loops around the register tile of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopOrder {
    /// Rows outermost: the rows of a tile stay in cache while all panels of the right side pass.
    Rows,
    /// Panels outermost: a panel stays in cache while all rows pass.
    Panels,
}

/// An alternative that is tried in place of the cost model's choice, to measure it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TuningTrial {
    /// No alternative.
    #[default]
    None,
    /// The tile with this rank in the cost model; the best one has rank 0.
    Tile(usize),
    /// The best tile in the other order of loops.
    OtherOrder,
    /// The other algorithm for each convolution.
    OtherMethod,
}

/// Measured choices for matrix products and convolutions, which override the cost model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Choices by the key of a matrix product: `processor type height=… width=… …`, separated by single spaces.
    pub rows: BTreeMap<String, TileChoice>,
    /// Algorithms by the key of a convolution: `processor type convolution images=… height=… …`.
    pub methods: BTreeMap<String, ConvolutionMethod>,
    /// The alternative to try for products without a measured choice.
    pub trial: TuningTrial,
}

/// Panel sizes of matrix products in the code for other sizes or processors of the same function: code that reads equal panels shares one
/// copy of the constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PanelSizes {
    /// Whether code for processors with other vector widths should use the same panels.
    pub are_for_others: bool,
    known: BTreeMap<String, PanelSize>,
}

impl PanelSizes {
    /// An empty table; `are_for_others` says whether code for processors with other vector widths will use it.
    pub fn empty(are_for_others: bool) -> PanelSizes {
        PanelSizes { are_for_others, known: BTreeMap::new() }
    }
    /// Panel size recorded for the product named `form`: else that of the same product on another processor, of one with other rows, or of one
    /// split into another number of columns.
    pub fn find(&self, form: &str) -> Option<PanelSize> {
        PanelSizes::names(form).iter().find_map(|name| self.known.get(name)).copied()
    }
    /// Records the panel size of a product unless it has one already.
    pub fn add(&mut self, form: &str, size: PanelSize) {
        for name in PanelSizes::names(form) {
            self.known.entry(name).or_insert(size);
        }
    }
    /// Keys under which a product's panel size may be recorded, the most exact first.
    fn names(form: &str) -> [String; 3] {
        [
            PanelSizes::product(form),
            PanelSizes::constant(form, &["columns=", "sum="]),
            PanelSizes::constant(form, &["sum="]),
        ]
    }
    /// The key of a product without its processor.
    fn product(form: &str) -> String {
        form.split(' ').skip(1).collect::<Vec<_>>().join(" ")
    }
    /// A key made of the product's type and those of its sizes that begin with one of `sizes`.
    fn constant(form: &str, sizes: &[&str]) -> String {
        let mut words = form.split(' ').skip(1);
        let dtype = words.next().unwrap_or("");
        let of: Vec<&str> = words.filter(|w| sizes.iter().any(|size| w.starts_with(size))).collect();
        format!("{dtype} {}", of.join(" "))
    }
}

/// The number of columns of a panel, and of the vectors that it was chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelSize {
    /// Number of columns.
    pub columns: u64,
    /// Columns of a vector.
    pub lanes: u64,
}

impl Tuning {
    /// The algorithm for the convolution with the key `form`: the measured one, else the cost model's choice `of_model`, or its alternative
    /// during a trial.
    pub fn convolution_method(&self, form: &str, of_model: ConvolutionMethod) -> ConvolutionMethod {
        match (self.methods.get(form), self.trial) {
            (Some(&measured), _) => measured,
            (None, TuningTrial::OtherMethod) => of_model.alternative(),
            (None, TuningTrial::None | TuningTrial::Tile(_) | TuningTrial::OtherOrder) => of_model,
        }
    }
    /// Parses a tuning file.
    ///
    /// # Errors `Code::BadOption` for the first malformed row, or a file that is no tuning file.
    pub fn parse(text: &str) -> Result<Tuning> {
        let mut tuning = Tuning::default();
        if text.lines().next().map(str::trim_end) != Some(HEAD) {
            let told = format!("a file of tuned choices begins with `{HEAD}`");
            return Err(Diagnostic::new(Code::BadOption, told).help("tfaot compile --tune FILE writes one").into());
        }
        for (number, line) in text.lines().enumerate() {
            let words = line.split('#').next().unwrap_or("").trim();
            if words.is_empty() {
                continue;
            }
            if tuning.add(words).is_none() {
                let told = format!("line {}: `{words}` is no tuned choice", number + 1);
                return Err(Diagnostic::new(Code::BadOption, told)
                    .help(
                        "PROCESSOR TYPE NAME=NUMBER ...: HIGHxWIDExVECTORSxLANES rows, or panels in the place of rows; direct or winograd behind a convolution",
                    )
                    .into());
            }
        }
        Ok(tuning)
    }

    /// Parses one row and adds it; `None` if it is malformed.
    fn add(&mut self, row: &str) -> Option<()> {
        let (form, choice) = row.split_once(':')?;
        let form = form.split_whitespace().collect::<Vec<_>>().join(" ");
        let choice = choice.trim();
        match ConvolutionMethod::parse(choice) {
            Some(method) => drop(self.methods.insert(form, method)),
            None => drop(self.rows.insert(form, TileChoice::parse(choice)?)),
        }
        Some(())
    }
}

impl ConvolutionMethod {
    fn parse(text: &str) -> Option<ConvolutionMethod> {
        match text {
            "direct" => Some(ConvolutionMethod::Direct),
            "winograd" => Some(ConvolutionMethod::Winograd),
            _ => None,
        }
    }

    /// The alternative algorithm for the same convolution.
    pub fn alternative(self) -> ConvolutionMethod {
        match self {
            ConvolutionMethod::Direct => ConvolutionMethod::Winograd,
            ConvolutionMethod::Winograd => ConvolutionMethod::Direct,
        }
    }
}

impl fmt::Display for ConvolutionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConvolutionMethod::Direct => "direct",
            ConvolutionMethod::Winograd => "winograd",
        })
    }
}

impl TileChoice {
    fn parse(text: &str) -> Option<TileChoice> {
        let (tile, order) = text.split_once(' ')?;
        let numbers: Vec<u64> = tile.split('x').map(|n| n.parse().ok().filter(|&n| n > 0)).collect::<Option<_>>()?;
        let [high, wide, vectors, lanes] = numbers[..] else { return None };
        let order = match order.trim() {
            "rows" => LoopOrder::Rows,
            "panels" => LoopOrder::Panels,
            _ => return None,
        };
        Some(TileChoice { high, wide, vectors, lanes, order })
    }
}

impl fmt::Display for TileChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            LoopOrder::Rows => "rows",
            LoopOrder::Panels => "panels",
        };
        write!(f, "{}x{}x{}x{} {order}", self.high, self.wide, self.vectors, self.lanes)
    }
}

/// Prints the tuning file, sorted, so that equal choices give equal text.
impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}")?;
        let rows = self.rows.iter().map(|(form, choice)| format!("{form}: {choice}"));
        let methods = self.methods.iter().map(|(form, method)| format!("{form}: {method}"));
        let mut all: Vec<String> = rows.chain(methods).collect();
        all.sort_unstable();
        all.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_known_for_other_rows_and_for_other_parts() {
        let size = |columns: u64| PanelSize { columns, lanes: 16 };
        let mut panels = PanelSizes::empty(true);
        panels.add("x86-64-v4 f32 batch=1 rows=8 width=8 columns=48 sum=384", size(16));
        panels.add("x86-64-v4 f32 batch=1 rows=9 width=9 columns=64 sum=384", size(64));
        assert_eq!(panels.find("x86-64-v3 f32 batch=1 rows=9 width=9 columns=64 sum=384"), Some(size(64)));
        assert_eq!(panels.find("x86-64-v3 f32 batch=1 rows=5 width=5 columns=64 sum=384"), Some(size(64)));
        assert_eq!(panels.find("x86-64-v3 f32 batch=1 rows=5 width=5 columns=192 sum=384"), Some(size(16)));
        assert_eq!(panels.find("x86-64-v3 f32 batch=1 rows=8 width=8 columns=48 sum=100"), None);
        assert_eq!(panels.find("x86-64-v3 f64 batch=1 rows=8 width=8 columns=48 sum=384"), None);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = "# tfaot tuning 1\nznver4  f32 height=1 width=49: 1x7x4x16 panels # by hand\n\nx86-64-v3 f32 a=1: 2x3x1x8 rows\nznver4 f32 convolution images=1: winograd\n";
        let tuning = Tuning::parse(text).expect("a file");
        assert_eq!((tuning.rows.len(), tuning.methods.len()), (2, 1));
        let row = tuning.rows.get("znver4 f32 height=1 width=49").expect("a row");
        assert_eq!((row.wide, row.order), (7, LoopOrder::Panels));
        assert_eq!(Tuning::parse(&tuning.to_string()).expect("a file"), tuning);
    }

    #[test]
    fn what_is_no_row_is_an_error_with_its_line() {
        for bad in ["a b", "a: 1x2x3 rows", "a: 1x0x1x1 rows", "a: 1x1x1x1 columns", "a: 1x1x1x1"] {
            let error = Tuning::parse(&format!("{HEAD}\n{bad}\n")).expect_err("no row").to_string();
            assert!(error.contains("line 2"), "{error}");
        }
        assert!(Tuning::parse("").is_err());
    }
}
