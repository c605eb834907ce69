popcell_sdk::test_main!({{crate}}, "tests");
