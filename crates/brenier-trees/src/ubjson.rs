//! UBJSON, the binary form of JSON that XGBoost writes by default, as a JSON value.

use serde_json::{Map, Number, Value};

/// Objects in objects in ...; deeper than this is an attack or an accident.
const DEEPEST: usize = 64;

pub(crate) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let mut reader = Reader { bytes, at: 0 };
    let marker = reader.byte()?;
    reader.value(marker, 0)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, String> {
        let byte = self.bytes.get(self.at).copied().ok_or("the file ends early")?;
        self.at += 1;
        Ok(byte)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        self.at += N;
        taken.copied().ok_or_else(|| "the file ends early".to_string())
    }

    /// A whole number of this kind; none of another.
    fn integer(&mut self, marker: u8) -> Result<Option<i64>, String> {
        Ok(Some(match marker {
            b'i' => i64::from(i8::from_be_bytes(self.take()?)),
            b'U' => i64::from(u8::from_be_bytes(self.take()?)),
            b'I' => i64::from(i16::from_be_bytes(self.take()?)),
            b'u' => i64::from(u16::from_be_bytes(self.take()?)),
            b'l' => i64::from(i32::from_be_bytes(self.take()?)),
            b'm' => i64::from(u32::from_be_bytes(self.take()?)),
            b'L' => i64::from_be_bytes(self.take()?),
            _ => return Ok(None),
        }))
    }

    fn length(&mut self) -> Result<usize, String> {
        let marker = self.byte()?;
        let length = self.integer(marker)?.and_then(|n| usize::try_from(n).ok());
        // Every element takes a byte, but those of a list of nothing.
        length.filter(|&n| n <= self.bytes.len()).ok_or_else(|| format!("a wrong length at byte {}", self.at))
    }

    fn text(&mut self) -> Result<String, String> {
        let length = self.length()?;
        let bytes = self.bytes.get(self.at..self.at + length).ok_or("the file ends early")?;
        self.at += length;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn value(&mut self, marker: u8, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err(format!("it nests deeper than {DEEPEST}"));
        }
        if let Some(integer) = self.integer(marker)? {
            return Ok(integer.into());
        }
        let number = |value: f64| Number::from_f64(value).map_or(Value::Null, Value::Number);
        Ok(match marker {
            // As it would be written in decimals: f32 numbers stay what they are.
            b'd' => number(f64::from(f32::from_be_bytes(self.take()?))),
            b'D' => number(f64::from_be_bytes(self.take()?)),
            b'S' | b'H' => self.text()?.into(),
            b'C' => char::from(self.byte()?).to_string().into(),
            b'T' => true.into(),
            b'F' => false.into(),
            b'Z' => Value::Null,
            b'[' => self.list(depth)?,
            b'{' => self.object(depth)?,
            other => {
                return Err(format!(
                    "byte {} is {other:#04x}, which begins no value",
                    self.at.saturating_sub(1)
                ));
            }
        })
    }

    /// The kind and the number of elements, where they are said ahead.
    fn header(&mut self) -> Result<(Option<u8>, Option<usize>), String> {
        let mut kind = None;
        if self.bytes.get(self.at) == Some(&b'$') {
            self.at += 1;
            kind = Some(self.byte()?);
        }
        if self.bytes.get(self.at) == Some(&b'#') {
            self.at += 1;
            return Ok((kind, Some(self.length()?)));
        }
        if kind.is_some() { Err("a list with a kind but no length".to_string()) } else { Ok((None, None)) }
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let (kind, count) = self.header()?;
        let mut values = Vec::new();
        while count.is_none_or(|count| values.len() < count) {
            let marker = if let Some(kind) = kind { kind } else { self.byte()? };
            if count.is_none() && marker == b']' {
                break;
            }
            values.push(self.value(marker, depth + 1)?);
        }
        Ok(values.into())
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        let (kind, count) = self.header()?;
        let (mut values, mut read) = (Map::new(), 0);
        while count.is_none_or(|count| read < count) {
            if count.is_none() && self.bytes.get(self.at) == Some(&b'}') {
                self.at += 1;
                break;
            }
            let key = self.text()?;
            let marker = if let Some(kind) = kind { kind } else { self.byte()? };
            values.insert(key, self.value(marker, depth + 1)?);
            read += 1;
        }
        Ok(values.into())
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::json;

    #[test]
    fn values_of_every_kind_are_read() {
        let bytes = b"{L\0\0\0\0\0\0\0\x01a[$d#L\0\0\0\0\0\0\0\x02\x3f\x80\0\0\xbf\0\0\0i\x01b[TFZi\xfdU\xfdSU\x02hi]}";
        let expected = json!({"a": [1.0, -0.5], "b": [true, false, null, -3, 253, "hi"]});
        assert_eq!(parse(bytes).unwrap(), expected);
    }

    #[test]
    fn what_ends_early_or_lies_about_its_length_is_refused() {
        let whole = b"{i\x01a[$d#i\x01\x3f\x80\0\0}";
        assert!(parse(whole).is_ok());
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_err(), "{end}");
        }
        assert!(parse(b"[#L\x7f\xff\xff\xff\xff\xff\xff\xff").unwrap_err().contains("length"));
        assert!(parse(&[b'['; 100]).unwrap_err().contains("deeper"));
        assert!(parse(b"[$Z#i\x05").is_ok());
    }
}
