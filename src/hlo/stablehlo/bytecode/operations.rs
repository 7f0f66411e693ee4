//! Reader of the operations of a bytecode file, as the tree that text is also parsed to.
use indexmap::IndexMap;

use super::cursor::Cursor;
use super::properties;
use super::tables::{MOST_DEPTH, PROPERTIES, Tables};
use crate::diag::{Code, Error, Result};
use crate::hlo::Shape;
use crate::hlo::stablehlo::function::device_count;
use crate::hlo::stablehlo::shards::read_mesh;
use crate::hlo::stablehlo::tree::{FuncOp, FuncPort, MlirAttr, ModuleTree, Operation, RegionBlock, ValueRef};

/// First version in which the regions of isolated operations are separate sections.
const ISOLATED_SECTIONS: u64 = 2;
/// First version that encodes use-list orders, which are ignored.
const USE_ORDERS: u64 = 3;
/// First version in which arguments have a flag for the presence of a location.
const LOCATION_FLAGS: u64 = 4;

/// Bits of the mask behind an operation's name, one for each part that the operation has.
mod has {
    pub const ATTRIBUTES: u8 = 0x01;
    pub const RESULTS: u8 = 0x02;
    pub const OPERANDS: u8 = 0x04;
    pub const SUCCESSORS: u8 = 0x08;
    pub const REGIONS: u8 = 0x10;
    pub const USE_ORDERS: u8 = 0x20;
    pub const PROPERTIES: u8 = 0x40;
}

/// Next value number to be assigned, and the end of the region's numbers.
struct ValueNumbers {
    next: u64,
    end: u64,
}

/// A block: its operations, and its arguments' attributes.
#[derive(Default)]
struct Block {
    region: RegionBlock,
    ports: Vec<FuncPort>,
}

/// Reads the functions of a module from its section of operations, `ir`.
pub(super) fn read_functions<'a>(tables: &Tables<'a>, mut ir: Cursor<'a>) -> Result<ModuleTree> {
    let mut out = ModuleTree { name: String::new(), header: Vec::new(), meshes: IndexMap::new(), all: IndexMap::new() };
    let mut reader = OperationReader { tables, found: Vec::new(), meshes: IndexMap::new(), depth: 0 };
    let top = reader.block(&mut ir, &mut ValueNumbers { next: 0, end: 0 })?;
    for op in top.region.ops.into_iter().filter(|op| op.name == "builtin.module") {
        if let Some(MlirAttr::Text(name)) = op.attr(&["sym_name"]) {
            out.name.clone_from(name);
        }
        out.header.extend(op.attrs.into_iter().filter_map(|(name, value)| device_count(name, value)));
    }
    for (name, text) in reader.meshes {
        let axes = read_mesh(&name, &text)?;
        out.meshes.insert(name, axes);
    }
    for (name, function) in reader.found {
        if out.all.insert(name.clone(), function).is_some() {
            return Err(Error::user(Code::BadEncoding, format!("the function `{name}` stands twice")));
        }
    }
    if out.all.is_empty() {
        return Err(Error::user(Code::HloUnsupported, "there is no function of StableHLO in the bytecode"));
    }
    Ok(out)
}

/// Name of a value, by its number.
fn name(value: u64) -> String {
    format!("v{value}")
}

struct OperationReader<'t, 'a> {
    tables: &'t Tables<'a>,
    /// Functions with their names, in the order of the file.
    found: Vec<(String, FuncOp)>,
    /// Meshes by name, as text.
    meshes: IndexMap<String, String>,
    depth: usize,
}

impl<'a> OperationReader<'_, 'a> {
    fn block(&mut self, at: &mut Cursor<'a>, scope: &mut ValueNumbers) -> Result<Block> {
        let (count, arguments) = at.number_with_flag()?;
        let mut block = Block::default();
        if arguments {
            self.arguments(at, scope, &mut block)?;
        }
        let count = at.checked_count(count)?;
        for _ in 0..count {
            let op = self.operation(at, scope)?;
            block.region.ops.push(op);
        }
        Ok(block)
    }
    fn arguments(&self, at: &mut Cursor<'a>, scope: &mut ValueNumbers, block: &mut Block) -> Result<()> {
        let count = at.count()?;
        for value in define(scope, count, at)? {
            let (ty, located) =
                if self.tables.version < LOCATION_FLAGS { (at.number()?, true) } else { at.number_with_flag()? };
            let shape = self.tables.shape(ty, at, 0)?;
            let location = if located { self.tables.location_name(at.number()?, at)? } else { None };
            block.region.args.push((name(value), shape));
            block.ports.push(FuncPort { name: location, attrs: Vec::new() });
        }
        if self.tables.version >= USE_ORDERS && at.byte()? != 0 {
            use_orders(at, count)?;
        }
        Ok(())
    }
    fn operation(&mut self, at: &mut Cursor<'a>, scope: &mut ValueNumbers) -> Result<Operation> {
        let full = self.tables.operation(at.number()?, at)?.to_string();
        let mask = at.byte()?;
        at.number()?;
        let mut op = Operation {
            place: None,
            name: stablehlo_name(&full),
            results: Vec::new(),
            operands: Vec::new(),
            attrs: self.attributes(&full, mask, at)?,
            regions: Vec::new(),
            types: Vec::new(),
        };
        if mask & has::RESULTS != 0 {
            let n = at.count()?;
            op.types = (0..n).map(|_| self.tables.shape(at.number()?, at, 0)).collect::<Result<Vec<Shape>>>()?;
        }
        if mask & has::OPERANDS != 0 {
            let n = at.count()?;
            let operand = |at: &mut Cursor| Ok(ValueRef { name: name(at.number()?), index: 0 });
            op.operands = (0..n).map(|_| operand(at)).collect::<Result<_>>()?;
        }
        if mask & has::SUCCESSORS != 0 {
            return Err(Error::user(Code::HloUnsupported, format!("`{full}` goes on in another block")));
        }
        if mask & has::USE_ORDERS != 0 {
            use_orders(at, op.types.len())?;
        }
        let (region_count, isolated) = if mask & has::REGIONS != 0 { at.number_with_flag()? } else { (0, false) };
        if let (true, Some(MlirAttr::Text(name)), Some(MlirAttr::Text(text))) =
            (full == "sdy.mesh", op.attr(&["sym_name"]), op.attr(&["mesh"]))
        {
            self.meshes.insert(name.clone(), text.clone());
        }
        op.results = define(scope, op.types.len(), at)?.map(name).collect();
        self.regions(&mut op, region_count, isolated, at, scope)?;
        Ok(op)
    }
    /// Attributes of an operation: its dictionary, and its properties.
    fn attributes(&self, operation: &str, mask: u8, at: &mut Cursor<'a>) -> Result<Vec<(String, MlirAttr)>> {
        let mut all = Vec::new();
        if mask & has::ATTRIBUTES != 0 {
            match self.tables.value(at.number()?, at, 0)? {
                MlirAttr::Dict(dictionary) => all = dictionary,
                _ => return Err(at.error("the attributes of an operation are no dictionary")),
            }
        }
        if mask & has::PROPERTIES == 0 {
            return Ok(all);
        }
        let index = at.number()?;
        if let Some(own) = operation.strip_prefix("vhlo.") {
            all.extend(properties::read(self.tables, own, self.tables.property(index, at)?)?);
        } else if operation.starts_with("sdy.") {
            all.extend(properties::read(self.tables, operation, self.tables.property(index, at)?)?);
        } else if operation == "builtin.module" && self.tables.version >= PROPERTIES {
            let mut own = self.tables.property(index, at)?;
            if let (symbol, true) = own.number_with_flag()? {
                all.push(("sym_name".to_string(), self.tables.value(symbol, &own, 0)?));
            }
        }
        Ok(all)
    }
    fn regions(
        &mut self,
        op: &mut Operation,
        count: u64,
        isolated: bool,
        at: &mut Cursor<'a>,
        scope: &ValueNumbers,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(at.error(format_args!("regions nest deeper than {MOST_DEPTH} levels")));
        }
        let mut own = None;
        if isolated && self.tables.version >= ISOLATED_SECTIONS {
            own = Some(at.section()?.1);
        }
        let at = own.as_mut().unwrap_or(at);
        let first = if isolated { 0 } else { scope.end };
        let count = at.checked_count(count)?;
        for _ in 0..count {
            let block = self.region(at, first)?;
            match (op.name.as_str(), op.attr(&["sym_name"])) {
                ("func.func", Some(MlirAttr::Text(symbol))) => {
                    let function = function(op, block, at)?;
                    self.found.push((symbol.clone(), function));
                }
                _ => op.regions.push(block.region),
            }
        }
        self.depth -= 1;
        Ok(())
    }
    /// Reads a region whose values are numbered from `first` on.
    fn region(&mut self, at: &mut Cursor<'a>, first: u64) -> Result<Block> {
        match at.number()? {
            0 => Ok(Block::default()),
            1 => {
                let values = at.number()?;
                let end = first.checked_add(values).ok_or_else(|| at.error("there are too many values"))?;
                self.block(at, &mut ValueNumbers { next: first, end })
            }
            _ => Err(Error::user(Code::HloUnsupported, "a region of several blocks")),
        }
    }
}

/// Assigns numbers to `count` new values.
fn define(scope: &mut ValueNumbers, count: usize, at: &Cursor) -> Result<std::ops::Range<u64>> {
    let first = scope.next;
    let end = first.checked_add(count as u64).filter(|&end| count == 0 || end <= scope.end);
    scope.next = end.ok_or_else(|| at.error("more values are defined than were announced"))?;
    Ok(first..scope.next)
}

/// Function with the attributes of its arguments and results.
fn function(op: &Operation, block: Block, at: &Cursor) -> Result<FuncOp> {
    let said = |name: &str| -> Vec<Vec<(String, MlirAttr)>> {
        let Some(MlirAttr::List(all)) = op.attr(&[name]) else { return Vec::new() };
        all.iter().map(|one| if let MlirAttr::Dict(own) = one { own.clone() } else { Vec::new() }).collect()
    };
    let Block { region: body, ports: mut args } = block;
    let of_args = said("arg_attrs");
    if !of_args.is_empty() && of_args.len() != args.len() {
        return Err(at.error(format_args!("{} of {} arguments have attributes", of_args.len(), args.len())));
    }
    for (port, attrs) in args.iter_mut().zip(of_args) {
        port.attrs = attrs;
    }
    let results = said("res_attrs").into_iter().map(|attrs| FuncPort { name: None, attrs }).collect();
    Ok(FuncOp { body, args, results })
}

/// Name of an operation in text: `stablehlo.add` for `vhlo.add_v1`.
fn stablehlo_name(full: &str) -> String {
    let Some(own) = full.strip_prefix("vhlo.") else { return full.to_string() };
    let stem = own.rsplit_once("_v").map_or(own, |(stem, _)| stem);
    match stem {
        "func" => "func.func".to_string(),
        "call" => "func.call".to_string(),
        stem => format!("stablehlo.{stem}"),
    }
}

/// Skips the use-list orders of `values` values.
fn use_orders(at: &mut Cursor, values: usize) -> Result<()> {
    let count = if values > 1 { at.count()? } else { 1 };
    for _ in 0..count {
        if values > 1 {
            at.number()?;
        }
        let (n, _) = at.number_with_flag()?;
        let n = at.checked_count(n)?;
        for _ in 0..n {
            at.number()?;
        }
    }
    Ok(())
}
