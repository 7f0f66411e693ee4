//! Parser of operations, in the generic form and in StableHLO's own.
use super::attribute::conv_axes;
use super::reader::TextReader;
use super::tree::{FuncPort, MlirAttr, Operation, RegionBlock, ValueRef};
use super::types::OpSignature;
use crate::diag::{Code, Result};
use crate::hlo::Shape;

impl<'a> TextReader<'a> {
    /// Parses the operations of a region up to and including its `}`.
    pub fn block(&mut self, args: Vec<(String, Shape)>) -> Result<RegionBlock> {
        let mut region = RegionBlock { args, ops: Vec::new() };
        self.enter()?;
        if self.is_next("^") {
            self.take_bytes(1);
            self.suffix()?;
            if self.eat("(") {
                region.args = self.list(")", TextReader::block_argument)?;
            }
            self.expect(":")?;
        }
        while !self.eat("}") {
            if self.is_next("^") {
                return Err(self.error_as(Code::HloUnsupported, "a region of several blocks"));
            }
            region.ops.push(self.operation()?);
        }
        self.leave();
        Ok(region)
    }
    /// Parses `%a: tensor<f32>` of a region.
    fn block_argument(&mut self) -> Result<(String, Shape)> {
        self.argument().map(|(name, shape, _)| (name, shape))
    }
    /// Parses `%a: tensor<f32> {x = 1} loc("a")` of a function.
    pub fn argument(&mut self) -> Result<(String, Shape, FuncPort)> {
        self.expect("%")?;
        let name = self.suffix()?.to_string();
        self.expect(":")?;
        let shape = self.ty()?;
        let attrs = if self.eat("{") { self.dictionary("}")? } else { Vec::new() };
        Ok((name, shape, FuncPort { name: self.location()?, attrs }))
    }
    fn value(&mut self) -> Result<ValueRef> {
        self.expect("%")?;
        let name = self.suffix()?.to_string();
        let index = if self.eat("#") { self.int()? as usize } else { 0 };
        Ok(ValueRef { name, index })
    }
    /// Parses `%r:2 = op ...`.
    pub fn operation(&mut self) -> Result<Operation> {
        let place = Some(self.line_and_column());
        let mut results = Vec::new();
        while self.eat("%") {
            let name = self.suffix()?.to_string();
            // `%r:2` names two results, `%r#0` and `%r#1`.
            if self.eat(":") {
                self.int()?;
            }
            results.push(name);
            if !self.eat(",") {
                self.expect("=")?;
                break;
            }
        }
        let mut op = Operation {
            place,
            name: String::new(),
            results,
            operands: Vec::new(),
            attrs: Vec::new(),
            regions: Vec::new(),
            types: Vec::new(),
        };
        if self.is_next("\"") {
            op.name = self.string()?.to_string();
            self.generic(&mut op)?;
        } else {
            op.name = self.word()?.to_string();
            self.pretty(&mut op)?;
        }
        self.location()?;
        Ok(op)
    }
    /// Parses `(%a, %b) <{...}> ({...}, {...}) {...} : (T, U) -> V`.
    fn generic(&mut self, op: &mut Operation) -> Result<()> {
        self.expect("(")?;
        op.operands = self.list(")", TextReader::value)?;
        if self.eat("<{") {
            op.attrs = self.dictionary("}")?;
            self.expect(">")?;
        }
        if self.eat("(") {
            op.regions = self.list(")", |r| {
                r.expect("{")?;
                r.block(Vec::new())
            })?;
        }
        if self.eat("{") {
            op.attrs.extend(self.dictionary("}")?);
        }
        self.expect(":")?;
        op.types = self.signature()?.results;
        Ok(())
    }
    /// Parses the custom syntax of a dialect: clauses separated by commas, then types.
    fn pretty(&mut self, op: &mut Operation) -> Result<()> {
        match op.name.as_str() {
            "stablehlo.reduce" => return self.reduce(op),
            "stablehlo.while" => return self.while_loop(op),
            "sdy.manual_computation" => return self.manual_computation(op),
            "stablehlo.constant" | "arith.constant" => {
                if self.eat("{") {
                    op.attrs = self.dictionary("}")?;
                }
                let value = self.dense()?;
                op.types = vec![Shape::array(value.dtype, value.dims.clone())];
                op.attrs.push(("value".to_string(), MlirAttr::Dense(value)));
                return Ok(());
            }
            _ => {}
        }
        if op.is_return() && !self.is_next("%") {
            return Ok(());
        }
        while !self.is_next(":") {
            let before = self.remaining().len();
            self.clause(op)?;
            self.eat(",");
            if self.remaining().len() == before {
                return Err(self.error(format!("`{}` is not written like this", op.name)));
            }
            // Without a type: `check.expect_eq_const %0, dense<1> : tensor<i32>` has already consumed its own.
            if op.name.starts_with("check.")
                && !self.is_next(":")
                && matches!(op.attrs.last(), Some((_, MlirAttr::Dense(_))))
            {
                return Ok(());
            }
        }
        self.expect(":")?;
        self.results(op)
    }
    /// Parses the types behind the colon.
    fn results(&mut self, op: &mut Operation) -> Result<()> {
        let OpSignature { mut results, listed } = self.signature()?;
        let several = matches!(op.name.as_str(), "stablehlo.optimization_barrier" | "stablehlo.while");
        if listed && !several && results.len() > 1 {
            results.drain(..results.len() - 1);
        }
        op.types = results;
        Ok(())
    }
    /// Parses a clause: an operand, `dims = [0, 1]`, a word, a list in parentheses, slices in brackets, or a dictionary.
    fn clause(&mut self, op: &mut Operation) -> Result<()> {
        if self.is_next("%") {
            op.operands.push(self.value()?);
            return Ok(());
        }
        if self.eat("(") {
            self.list(")", |r| r.clause(op))?;
            return Ok(());
        }
        if self.eat("{") {
            op.attrs.extend(self.dictionary("}")?);
            return Ok(());
        }
        if self.is_next("@") || self.is_next("\"") {
            let value = self.attribute()?;
            op.attrs.push(("callee".to_string(), value));
            return Ok(());
        }
        if self.eat("[") {
            return self.brackets(op);
        }
        if self.is_next("<") {
            let text = self.skip_bracketed()?.to_string();
            op.attrs.push(("sharding".to_string(), MlirAttr::Text(text)));
            return Ok(());
        }
        if self.peek_word() == "dense" {
            let value = self.attribute()?;
            op.attrs.push(("value".to_string(), value));
            return Ok(());
        }
        let word = self.word()?.to_string();
        if word == "attributes" {
            self.expect("{")?;
            op.attrs.extend(self.dictionary("}")?);
        } else if self.eat("=") {
            self.keyword(op, word)?;
        } else {
            op.attrs.push((format!("word{}", op.attrs.len()), MlirAttr::Text(word)));
        }
        Ok(())
    }
    /// Parses `keyword = value`; some keywords have special syntax.
    fn keyword(&mut self, op: &mut Operation, word: String) -> Result<()> {
        let value = match word.as_str() {
            "dim_numbers" => {
                let end = self.remaining().find("->").map(|i| i + 2).unwrap_or(0);
                let end = self.remaining()[end..].find(']').map(|i| end + i + 1).unwrap_or(0);
                let text = self.take_bytes(end);
                MlirAttr::Conv(Box::new(conv_axes(text).map_err(|m| self.error(m))?))
            }
            "batching_dims" | "contracting_dims" => {
                let lhs = self.attribute()?;
                self.expect("x")?;
                MlirAttr::List(vec![lhs, self.attribute()?])
            }
            "window" => {
                self.expect("{")?;
                op.attrs.extend(self.dictionary("}")?);
                return Ok(());
            }
            "algorithm" if self.is_next("<") => self.skip_bracketed().map(|_| MlirAttr::Other)?,
            // A colon behind the number belongs to the operation's type.
            _ if !self.peek_number().is_empty() => self.number()?,
            _ => self.attribute()?,
        };
        op.attrs.push((word, value));
        Ok(())
    }
    /// Parses `0:2:1, 4:8` of a slice, or the index of a tuple element.
    fn brackets(&mut self, op: &mut Operation) -> Result<()> {
        if op.name != "stablehlo.slice" {
            let all = self.list("]", TextReader::int)?;
            op.attrs.push(("index".to_string(), MlirAttr::List(all.into_iter().map(MlirAttr::index).collect())));
            return Ok(());
        }
        let all = self.list("]", |r| {
            let start = r.int()?;
            r.expect(":")?;
            let limit = r.int()?;
            let stride = if r.eat(":") { r.int()? } else { 1 };
            Ok([start, limit, stride])
        })?;
        for (i, name) in ["start_indices", "limit_indices", "strides"].into_iter().enumerate() {
            let column = all.iter().map(|d| MlirAttr::index(d[i])).collect();
            op.attrs.push((name.to_string(), MlirAttr::List(column)));
        }
        Ok(())
    }
    /// Parses `(%x init: %z) applies stablehlo.add across dimensions = [1] : ...`, or with `reducer(...) {...}` at the end.
    fn reduce(&mut self, op: &mut Operation) -> Result<()> {
        let mut inits = Vec::new();
        loop {
            self.expect("(")?;
            op.operands.push(self.value()?);
            self.expect("init")?;
            self.expect(":")?;
            inits.push(self.value()?);
            self.expect(")")?;
            if !self.eat(",") {
                break;
            }
        }
        op.operands.extend(inits);
        let applies = if self.eat_word("applies") { Some(self.word()?.to_string()) } else { None };
        if !self.eat_word("across") || !self.eat_word("dimensions") {
            return Err(self.error("expects `across dimensions`"));
        }
        self.expect("=")?;
        let dims = self.attribute()?;
        op.attrs.push(("dimensions".to_string(), dims));
        if self.eat("{") {
            op.attrs.extend(self.dictionary("}")?);
        }
        self.expect(":")?;
        op.types = self.signature()?.results;
        let Some(applied) = applies else { return self.reducer(op) };
        let Some(Shape::Array(a)) = op.types.first() else { return Err(self.error("a reduction gives no array")) };
        let scalar = Shape::array(a.dtype, []);
        let value = |name: &str| ValueRef { name: name.to_string(), index: 0 };
        let body = |name: String, results: Vec<String>, operands: Vec<ValueRef>, types: Vec<Shape>| Operation {
            place: op.place,
            name,
            results,
            operands,
            attrs: Vec::new(),
            regions: Vec::new(),
            types,
        };
        let apply = body(applied, vec!["r".to_string()], vec![value("a"), value("b")], vec![scalar.clone()]);
        let end = body("stablehlo.return".to_string(), Vec::new(), vec![value("r")], Vec::new());
        let args = vec![("a".to_string(), scalar.clone()), ("b".to_string(), scalar)];
        op.regions.push(RegionBlock { args, ops: vec![apply, end] });
        Ok(())
    }
    /// Parses `reducer(%a: T, %b: T) (%c: U, %d: U) {...}`: a pair for each operand; the left ones come first.
    fn reducer(&mut self, op: &mut Operation) -> Result<()> {
        if !self.eat_word("reducer") {
            return Err(self.error("expects `reducer`"));
        }
        let (mut lhs, mut rhs) = (Vec::new(), Vec::new());
        while self.eat("(") {
            let pair = self.list(")", TextReader::block_argument)?;
            let [a, b] = <[_; 2]>::try_from(pair).map_err(|_| self.error("expects two values"))?;
            lhs.push(a);
            rhs.push(b);
        }
        lhs.extend(rhs);
        self.expect("{")?;
        op.regions.push(self.block(lhs)?);
        Ok(())
    }
    /// Parses `(%0) in_shardings=[...] out_shardings=[...] manual_axes={...} (%a: T) {...} : (U) -> V`.
    fn manual_computation(&mut self, op: &mut Operation) -> Result<()> {
        self.expect("(")?;
        op.operands = self.list(")", TextReader::value)?;
        while !self.is_next("(") {
            let name = self.word()?.to_string();
            self.expect("=")?;
            let text = self.skip_bracketed()?.to_string();
            op.attrs.push((name, MlirAttr::Text(text)));
        }
        self.expect("(")?;
        let args = self.list(")", TextReader::block_argument)?;
        self.expect("{")?;
        op.regions.push(self.block(args)?);
        self.expect(":")?;
        op.types = self.signature()?.results;
        Ok(())
    }
    /// Parses `(%a = %0, %b = %1) : T, U cond {...} do {...}`.
    fn while_loop(&mut self, op: &mut Operation) -> Result<()> {
        self.expect("(")?;
        let pairs = self.list(")", |r| {
            r.expect("%")?;
            let name = r.suffix()?.to_string();
            r.expect("=")?;
            Ok((name, r.value()?))
        })?;
        if self.eat(":") {
            op.types = self.signature()?.results;
        }
        if op.types.len() != pairs.len() {
            return Err(self.error(format!("{} types for {} values", op.types.len(), pairs.len())));
        }
        if self.eat_word("attributes") {
            self.expect("{")?;
            op.attrs = self.dictionary("}")?;
        }
        let args: Vec<(String, Shape)> = pairs.iter().map(|p| p.0.clone()).zip(op.types.iter().cloned()).collect();
        op.operands = pairs.into_iter().map(|p| p.1).collect();
        for word in ["cond", "do"] {
            if !self.eat_word(word) {
                return Err(self.error(format!("expects `{word}`")));
            }
            self.expect("{")?;
            op.regions.push(self.block(args.clone())?);
        }
        Ok(())
    }
}
