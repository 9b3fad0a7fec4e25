//! Decimal numbers of replies.

/// Append a decimal number. Most numbers are short, and copying their digits from a buffer takes longer
/// than computing them.
#[inline(always)]
pub fn append_number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..10 => out.push(b'0' + number as u8),
        10..100 => out.extend_from_slice(&PAIRS[number as usize]),
        100..1000 => {
            let [tens, ones] = PAIRS[number as usize % 100];
            out.extend_from_slice(&[b'0' + (number / 100) as u8, tens, ones]);
        }
        _ => append_long_number(out, number),
    }
}

#[inline(never)]
fn append_long_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The digits of all numbers below 100.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};
