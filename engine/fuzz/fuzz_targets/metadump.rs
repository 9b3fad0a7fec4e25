#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| (cachemark_properties::targets::target("metadump").check)(bytes));
