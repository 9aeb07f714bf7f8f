//! Numbers in pictures: digits of three by five dots.
//!
//! A colour bar needs its numbers and nothing else, so fifteen characters are drawn here instead of bringing in a
//! font and a rasteriser.

use image::{Rgb, RgbImage};

/// Pixels a dot, and dots from one character to the next.
const DOT: u32 = 2;
const ADVANCE: u32 = 4;

/// Height of a line in pixels.
pub(super) const LINE: u32 = 5 * DOT;

/// The characters, five rows of three dots each, the left one in the highest bit.
const GLYPHS: [(char, [u8; 5]); 15] = [
    ('0', [0b111, 0b101, 0b101, 0b101, 0b111]),
    ('1', [0b010, 0b110, 0b010, 0b010, 0b111]),
    ('2', [0b111, 0b001, 0b111, 0b100, 0b111]),
    ('3', [0b111, 0b001, 0b011, 0b001, 0b111]),
    ('4', [0b101, 0b101, 0b111, 0b001, 0b001]),
    ('5', [0b111, 0b100, 0b111, 0b001, 0b111]),
    ('6', [0b111, 0b100, 0b111, 0b101, 0b111]),
    ('7', [0b111, 0b001, 0b010, 0b010, 0b010]),
    ('8', [0b111, 0b101, 0b111, 0b101, 0b111]),
    ('9', [0b111, 0b101, 0b111, 0b001, 0b111]),
    ('.', [0b000, 0b000, 0b000, 0b000, 0b010]),
    ('-', [0b000, 0b000, 0b111, 0b000, 0b000]),
    ('+', [0b000, 0b010, 0b111, 0b010, 0b000]),
    ('e', [0b000, 0b111, 0b111, 0b100, 0b011]),
    (' ', [0b000, 0b000, 0b000, 0b000, 0b000]),
];

/// The width of a text in pixels.
pub(super) fn text_width(text: &str) -> u32 {
    ADVANCE * DOT * text.chars().count() as u32
}

/// Writes a number into a picture, in black, its upper left corner at `(left, top)`. What lies outside is cut off.
pub(super) fn write_number(picture: &mut RgbImage, left: u32, top: u32, text: &str) {
    for (place, letter) in text.chars().enumerate() {
        let Some((_, rows)) = GLYPHS.iter().find(|(known, _)| *known == letter) else { continue };
        for (row, bits) in rows.iter().enumerate() {
            for column in 0..3 {
                if bits >> (2 - column) & 1 == 1 {
                    let x = left + DOT * (ADVANCE * place as u32 + column);
                    let y = top + DOT * row as u32;
                    fill(picture, x, y, DOT, DOT, Rgb([0, 0, 0]));
                }
            }
        }
    }
}

/// Fills a rectangle as far as it lies in the picture.
pub(super) fn fill(picture: &mut RgbImage, left: u32, top: u32, width: u32, height: u32, colour: Rgb<u8>) {
    for y in top..(top + height).min(picture.height()) {
        for x in left..(left + width).min(picture.width()) {
            picture.put_pixel(x, y, colour);
        }
    }
}

/// Three significant digits, with a power of ten where the number is very small or large.
pub(super) fn short_number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return "0".to_string();
    }
    if !(1e-3..1e5).contains(&size) {
        return format!("{value:.1e}");
    }
    let places = (2 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_every_character_of_theirs_can_be_drawn() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-0.25, "-0.25"),
            (0.012345, "0.0123"),
            (12345.6, "12346"),
            (1.5e-7, "1.5e-7"),
            (-3.0e9, "-3.0e9"),
            (100.0, "100"),
        ] {
            assert_eq!(short_number(value), text);
            assert!(text.chars().all(|c| GLYPHS.iter().any(|(known, _)| *known == c)), "{text}");
        }
    }

    #[test]
    fn a_one_is_a_stroke_on_a_foot() {
        let mut picture = RgbImage::from_pixel(8, 10, Rgb([255; 3]));
        write_number(&mut picture, 0, 0, "1");
        let black = |x, y| picture.get_pixel(x, y).0 == [0, 0, 0];
        assert!((0..10).all(|y| black(2, y)), "the stroke");
        assert!((0..6).all(|x| black(x, 9)), "the foot");
        assert!(!black(0, 0) && !black(4, 4) && !black(6, 9));
    }
}
