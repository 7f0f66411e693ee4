//! Conversion of shardings to and from protobuf messages. Shardings are only carried: nothing else parses their text.
use super::messages::xla_data::{OpMetadata, OpSharding};
use super::scan::{TextCursor, escape};
use crate::diag::{Code, Error, Result};

/// Names of XLA's `OpSharding.Type`, by number; tuples and tiles have syntax of their own.
const TYPES: &[(&str, i32)] = &[("replicated", 0), ("manual", 4), ("unknown", 5), ("unreduced", 6)];
const MAXIMAL: i32 = 1;
const TUPLE: i32 = 2;
const OTHER: i32 = 3;

fn unsupported(what: &str) -> Error {
    Error::user(Code::HloUnsupported, format!("{what} in a sharding is not written to messages"))
}

/// Parses a sharding: `{replicated}`, `{devices=[2,2]<=[4]T(1,0) last_tile_dim_replicate}`, `{{manual}, {maximal device=1}}`.
pub(super) fn write(text: &str) -> Result<OpSharding> {
    let mut s = TextCursor::new(text);
    let sharding = parse_sharding(&mut s)?;
    if s.at_end() { Ok(sharding) } else { Err(s.expected_error("the end of a sharding")) }
}

fn parse_sharding(s: &mut TextCursor) -> Result<OpSharding> {
    s.expect('{')?;
    if !s.is_next('{') && !s.is_next('}') {
        return parse_fields(s);
    }
    let mut p = OpSharding { type_: TUPLE, ..Default::default() };
    while !s.eat('}') {
        s.expect('{')?;
        p.tuple_shardings.push(parse_fields(s)?);
        s.eat(',');
    }
    Ok(p)
}

/// Parses the fields of a sharding, behind its `{`.
fn parse_fields(s: &mut TextCursor) -> Result<OpSharding> {
    let mut p = OpSharding::new();
    while !s.eat('}') {
        match s.word() {
            "maximal" => p.type_ = MAXIMAL,
            "device" => {
                s.expect('=')?;
                p.tile_assignment_dimensions = vec![1];
                p.tile_assignment_devices = vec![s.int()?];
            }
            "devices" => devices(s, &mut p)?,
            "last_tile_dim_replicate" => p.replicate_on_last_tile_dim = true,
            "last_tile_dims" => last_tile_dims(s, &mut p)?,
            "metadata" => metadata(s, &mut p)?,
            word @ ("shard_as" | "shard_like") => {
                p.is_shard_group = true;
                p.shard_group_type = i32::from(word == "shard_like");
                p.shard_group_id = s.int()?;
            }
            word => match TYPES.iter().find(|t| t.0 == word) {
                Some(kind) => p.type_ = kind.1,
                None => return Err(unsupported(&format!("`{word}`"))),
            },
        }
    }
    Ok(p)
}

/// Parses `={op_name="a"}` or `={{op_name="a"}, {op_name="b"}}`.
fn metadata(s: &mut TextCursor, p: &mut OpSharding) -> Result<()> {
    s.expect('=')?;
    s.expect('{')?;
    if !s.is_next('{') {
        p.metadata.push(origin(s)?);
        return Ok(());
    }
    while !s.eat('}') {
        s.expect('{')?;
        p.metadata.push(origin(s)?);
        s.eat(',');
    }
    Ok(())
}

/// Parses the fields of an op's metadata, behind its `{`.
fn origin(s: &mut TextCursor) -> Result<OpMetadata> {
    let mut m = OpMetadata::new();
    while !s.eat('}') {
        let name = s.word();
        s.expect('=')?;
        if name == "source_line" {
            m.source_line = s.int()? as i32;
            continue;
        }
        let text = String::from_utf8_lossy(&s.quoted()?).into_owned();
        match name {
            "op_type" => m.op_type = text,
            "op_name" => m.op_name = text,
            "source_file" => m.source_file = text,
            _ => return Err(unsupported(&format!("`{name}`"))),
        }
        s.eat(',');
    }
    Ok(m)
}

fn origin_text(m: &OpMetadata) -> String {
    let texts = [("op_type", &m.op_type), ("op_name", &m.op_name), ("source_file", &m.source_file)];
    let quoted = |(name, text): &(&str, &String)| format!("{name}=\"{}\"", escape(text.as_bytes()));
    let mut parts: Vec<String> = texts.iter().filter(|t| !t.1.is_empty()).map(quoted).collect();
    if m.source_line != 0 {
        parts.push(format!("source_line={}", m.source_line));
    }
    format!("{{{}}}", parts.join(" "))
}

fn last_tile_dims(s: &mut TextCursor, p: &mut OpSharding) -> Result<()> {
    s.expect('=')?;
    s.expect('{')?;
    while !s.eat('}') {
        let word = s.word();
        let kind = TYPES.iter().find(|t| t.0 == word).ok_or_else(|| s.expected_error("a sharding's type"))?;
        p.last_tile_dims.push(kind.1);
        s.eat(',');
    }
    Ok(())
}

/// Parses `=[2,2]0,1,2,3` or `=[2,2]<=[4]T(1,0)`.
fn devices(s: &mut TextCursor, p: &mut OpSharding) -> Result<()> {
    p.type_ = OTHER;
    s.expect('=')?;
    p.tile_assignment_dimensions = s.ints('[', ']')?;
    if s.eat_text("<=") {
        p.iota_reshape_dims = s.ints('[', ']')?;
        if s.eat_text("T(") {
            while !s.eat(')') {
                p.iota_transpose_perm.push(s.int()? as i32);
                s.eat(',');
            }
        } else {
            p.iota_transpose_perm = (0..p.iota_reshape_dims.len() as i32).collect();
        }
        return Ok(());
    }
    while s.is_int_next() {
        p.tile_assignment_devices.push(s.int()?);
        s.eat(',');
    }
    Ok(())
}

/// Text of a sharding message.
pub(super) fn read(p: &OpSharding) -> String {
    if p.type_ == TUPLE {
        let parts: Vec<String> = p.tuple_shardings.iter().map(read).collect();
        return format!("{{{}}}", parts.join(", "));
    }
    let list = |v: &[i64]| v.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let word = |number: i32| TYPES.iter().find(|t| t.1 == number).map_or("unknown", |t| t.0);
    let mut out = match p.type_ {
        MAXIMAL => format!("{{maximal device={}", list(&p.tile_assignment_devices)),
        OTHER => {
            let tiles = list(&p.tile_assignment_dimensions);
            let devices = if p.iota_reshape_dims.is_empty() {
                list(&p.tile_assignment_devices)
            } else {
                let plain = p.iota_transpose_perm.iter().enumerate().all(|(i, &d)| d == i as i32);
                let perm: Vec<String> = p.iota_transpose_perm.iter().map(i32::to_string).collect();
                let turned = if plain { String::new() } else { format!("T({})", perm.join(",")) };
                format!("<=[{}]{turned}", list(&p.iota_reshape_dims))
            };
            format!("{{devices=[{tiles}]{devices}")
        }
        number => format!("{{{}", word(number)),
    };
    if p.replicate_on_last_tile_dim {
        out += " last_tile_dim_replicate";
    }
    if !p.last_tile_dims.is_empty() {
        let kinds: Vec<&str> = p.last_tile_dims.iter().map(|&t| word(t)).collect();
        out += &format!(" last_tile_dims={{{}}}", kinds.join(", "));
    }
    if p.is_shard_group {
        let kind = if p.shard_group_type == 1 { "shard_like" } else { "shard_as" };
        out += &format!(" {kind} {}", p.shard_group_id);
    }
    match &p.metadata[..] {
        [] => {}
        [one] => out += &format!(" metadata={}", origin_text(one)),
        all => out += &format!(" metadata={{{}}}", all.iter().map(origin_text).collect::<Vec<_>>().join(", ")),
    }
    out + "}"
}
