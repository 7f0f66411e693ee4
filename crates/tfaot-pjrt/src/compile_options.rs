//! Options of a compilation, as far as they matter here, from XLA's message `CompileOptionsProto`.
//!
//! Source of the numbers: `xla/pjrt/proto/compile_options.proto`, `xla/xla_data.proto` (`DeviceAssignmentProto`).
use crate::client::MOST_DEVICES;
use crate::failure::{Code, Failure};

/// What a caller asks of a compilation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Copies of the program that run with data of their own.
    pub replicas: u64,
    /// Devices that share one copy.
    pub partitions: u64,
    /// Whether callers say at each call which device runs it.
    pub is_portable: bool,
    /// The devices that run it otherwise, partition by partition of each replica in turn; empty for the first ones.
    pub devices: Vec<i64>,
    /// Whether all arguments are one tuple.
    has_tuple: bool,
    /// Names of options of XLA.
    overrides: Vec<String>,
}

impl CompileOptions {
    /// Reads a message.
    ///
    /// # Errors
    /// `Code::InvalidArgument` for bytes that are no message; `Code::Unimplemented` for what is not known here.
    pub fn read(bytes: &[u8]) -> Result<CompileOptions, Failure> {
        let mut options = CompileOptions::default();
        for (number, value) in Fields(bytes) {
            match (number, value?) {
                (2, Value::Number(n)) => options.has_tuple = n != 0,
                (3, Value::Bytes(build)) => options.read_build(build)?,
                (4, Value::Number(n)) => options.is_portable = n != 0,
                (7, Value::Bytes(entry)) => options.overrides.push(name_of(entry)?),
                _ => {}
            }
        }
        options.check()?;
        Ok(options)
    }

    /// Number of devices that run the program together.
    pub fn device_count(&self) -> usize {
        usize::try_from(self.replicas.max(1).saturating_mul(self.partitions.max(1))).unwrap_or(usize::MAX)
    }

    fn read_build(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        for (number, value) in Fields(bytes) {
            match (number, value?) {
                (4, Value::Number(n)) => self.replicas = n,
                (5, Value::Number(n)) => self.partitions = n,
                (9, Value::Bytes(assignment)) => self.devices = assigned_devices(assignment)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        if self.device_count() > MOST_DEVICES {
            let told =
                format!("the program is for {} devices, and a client has {MOST_DEVICES} at most", self.device_count());
            return Err(Failure::new(Code::InvalidArgument, told));
        }
        if !self.devices.is_empty() && self.devices.len() != self.device_count() {
            let told = format!("{} devices are assigned to {}", self.devices.len(), self.device_count());
            return Err(Failure::new(Code::InvalidArgument, told));
        }
        if self.has_tuple {
            return Err(Failure::new(Code::Unimplemented, "arguments in one tuple are not known"));
        }
        match self.overrides.first() {
            Some(name) => Err(Failure::new(Code::InvalidArgument, format!("No such compile option: '{name}'"))),
            None => Ok(()),
        }
    }
}

/// The key of an entry of a map.
fn name_of(entry: &[u8]) -> Result<String, Failure> {
    for (number, value) in Fields(entry) {
        if let (1, Value::Bytes(name)) = (number, value?) {
            return Ok(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(String::new())
}

/// The devices of an assignment, partition by partition of each replica in turn.
fn assigned_devices(bytes: &[u8]) -> Result<Vec<i64>, Failure> {
    let mut partitions = Vec::new();
    for (number, value) in Fields(bytes) {
        let (3, Value::Bytes(computation)) = (number, value?) else { continue };
        let mut replicas = Vec::new();
        for (number, value) in Fields(computation) {
            match (number, value?) {
                (1, Value::Number(id)) => replicas.push(id as i64),
                (1, Value::Bytes(mut packed)) => {
                    while let Some(id) = varint(&mut packed) {
                        replicas.push(id as i64);
                    }
                }
                _ => {}
            }
        }
        partitions.push(replicas);
    }
    let replicas = partitions.iter().map(Vec::len).max().unwrap_or(0);
    Ok((0..replicas).flat_map(|r| partitions.iter().filter_map(move |p| p.get(r).copied())).collect())
}

/// Writes XLA's message `DeviceAssignmentProto` of as many replicas and partitions.
pub fn device_assignment(devices: &[i64], replicas: usize, partitions: usize) -> Vec<u8> {
    let mut message = Vec::new();
    let mut put =
        |number: u64, value: u64| [number << 3, value].into_iter().for_each(|n| write_varint(n, &mut message));
    put(1, replicas as u64);
    put(2, partitions as u64);
    for partition in 0..partitions {
        let mut ids = Vec::new();
        let own = devices.iter().skip(partition).step_by(partitions.max(1));
        own.for_each(|&id| write_varint(id as u64, &mut ids));
        let mut computation = vec![0x0a];
        write_varint(ids.len() as u64, &mut computation);
        computation.extend(ids);
        message.push(0x1a);
        write_varint(computation.len() as u64, &mut message);
        message.extend(computation);
    }
    message
}

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The value of a field.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A number of four or eight bytes, which no field of interest has.
    Other,
}

/// The fields of a message, in order, with their numbers.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Result<Value<'a>, Failure>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = varint(&mut self.0).and_then(|tag| Some((tag >> 3, self.value(tag & 7)?)));
        Some(match field {
            Some((number, value)) => (number, Ok(value)),
            None => {
                self.0 = &[];
                (0, Err(Failure::new(Code::InvalidArgument, "the compile options are no CompileOptionsProto")))
            }
        })
    }
}

impl<'a> Fields<'a> {
    fn value(&mut self, wire: u64) -> Option<Value<'a>> {
        let bytes = match wire {
            0 => return varint(&mut self.0).map(Value::Number),
            1 => 8,
            2 => usize::try_from(varint(&mut self.0)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (own, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(if wire == 2 { Value::Bytes(own) } else { Value::Other })
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_a_message() {
        // executable_build_options { num_replicas: 1 num_partitions: 1 device_assignment { 1 1 { 3 } } } compile_portable_executable
        let assignment = [0x08, 1, 0x10, 1, 0x1a, 3, 0x0a, 1, 3];
        let mut build = vec![0x20, 1, 0x28, 1, 0x4a, assignment.len() as u8];
        build.extend(assignment);
        let mut message = vec![0x1a, build.len() as u8];
        message.extend(build);
        message.extend([0x20, 1]);
        let read = CompileOptions::read(&message).expect("a message");
        assert_eq!((read.replicas, read.partitions, read.is_portable, read.devices), (1, 1, true, vec![3]));
    }

    #[test]
    fn assignments_are_written_as_they_are_read() {
        let message = device_assignment(&[0, 1, 2, 3, 300, 5], 3, 2);
        assert_eq!(assigned_devices(&message).ok(), Some(vec![0, 1, 2, 3, 300, 5]));
        assert_eq!(device_assignment(&[3], 1, 1), [0x08, 1, 0x10, 1, 0x1a, 3, 0x0a, 1, 3]);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        assert_eq!(CompileOptions::read(&[0x1a, 2, 0x28, 2]).map(|read| read.device_count()), Ok(2));
        assert!(CompileOptions::read(&[0x1a, 5, 0x28, 0xff, 0xff, 0xff, 0x7f]).is_err());
        assert!(CompileOptions::read(&[0x1a, 200]).is_err());
        assert!(CompileOptions::read(&[0xff]).is_err());
        assert_eq!(CompileOptions::read(&[]), Ok(CompileOptions::default()));
    }
}
