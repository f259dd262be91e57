//! Components written by hand, for what no rule in Rust would do.

use crate::paths;
use std::fmt::Write as _;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The rule contract.
pub fn contract() -> String {
    std::fs::read_to_string(paths::root().join("wit/rules.wit")).expect("the contract is in the project")
}

/// A component of a world, from its core module in text form.
pub fn component(wit: &str, world: &str, module: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("rules.wit", wit).expect("it is a package");
    let world = resolve.select_world(&[package], Some(world)).expect("it has the world");
    let mut module = wat::parse_str(module).unwrap_or_else(|error| panic!("{error}"));
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("a module takes metadata");
    let mut encoder = ComponentEncoder::default().module(&module).expect("it has metadata");
    encoder.encode().unwrap_or_else(|error| panic!("{error:#}"))
}

/// A rule for event versions 1 and 2 that goes by the first character of a payload. It makes a row of `n`, and of
/// `extra` if it has that column; it rejects at stage `TOY`.
#[derive(Debug, Clone)]
pub struct Toy {
    /// Its version.
    pub version: &'static str,
    /// What `n` is.
    pub n: i64,
    /// What the column `extra` is; without it there is no such column.
    pub extra: Option<&'static str>,
    /// First characters that it rejects.
    pub rejects: &'static str,
    /// First characters that it ignores.
    pub ignores: &'static str,
    /// First characters on which it traps.
    pub traps: &'static str,
    /// First characters on which it uses about two million units of fuel.
    pub dawdles: &'static str,
    /// Functions that nobody calls, for a component that takes long to compile.
    pub ballast: usize,
}

impl Default for Toy {
    fn default() -> Self {
        Self { version: "1.0.0", n: 1, extra: None, rejects: "r", ignores: "", traps: "", dawdles: "", ballast: 0 }
    }
}

impl Toy {
    /// The component.
    pub fn component(&self) -> Vec<u8> {
        component(&contract(), "validator", &self.module())
    }

    fn module(&self) -> String {
        let mut data = Data::default();
        let manifest = self.manifest(&mut data);
        let accept = self.accept(&mut data);
        let (stage, reason) = (data.text("TOY"), data.text("it is a toy"));
        let reject = data.words(&[1, stage.0, stage.1, reason.0, reason.1]);
        let ignore = data.words(&[2, reason.0, reason.1]);
        let on = |characters: &str, then: &str| {
            characters.bytes().fold(String::new(), |mut wat, byte| {
                writeln!(wat, "(if (i32.eq (local.get $first) (i32.const {byte})) (then {then}))").expect("it is text");
                wat
            })
        };
        let dawdle = "(loop $again (br_if $again (i32.ne (i32.const 0)
             (local.tee $turns (i32.sub (local.get $turns) (i32.const 1))))))";
        let steps =
            "(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const 7)) (i32.rotl (local.get 1) (local.get 0))))
            (local.set 1 (i32.add (local.get 1) (i32.load (i32.and (local.get 0) (i32.const 1023)))))"
                .repeat(200);
        let ballast = format!("(func (param i32 i32) (result i32) {steps} local.get 1)").repeat(self.ballast);
        format!(
            "(module
               (memory (export \"memory\") 2)
               (global $top (mut i32) (i32.const 32768))
               (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) (local $at i32)
                 (local.set $at (i32.and (i32.sub (i32.add (global.get $top) (local.get 2)) (i32.const 1))
                                         (i32.sub (i32.const 0) (local.get 2))))
                 (global.set $top (i32.add (local.get $at) (local.get 3)))
                 local.get $at)
               (func (export \"preflight:rules/validation@0.1.0#describe\") (result i32) i32.const {manifest})
               (func (export \"preflight:rules/validation@0.1.0#validate\")
                 (param $payload i32) (param $length i32) (param i32 i32 i32 i32 i64) (result i32)
                 (local $first i32) (local $turns i32)
                 (global.set $top (i32.const 32768))
                 (local.set $turns (i32.const 250000))
                 (if (local.get $length) (then (local.set $first (i32.load8_u (local.get $payload)))))
                 {}{}{}{}
                 i32.const {accept})
               {ballast}
               (data (i32.const {}) \"{}\"))",
            on(self.dawdles, dawdle),
            on(self.traps, "unreachable"),
            on(self.rejects, &format!("(return (i32.const {reject}))")),
            on(self.ignores, &format!("(return (i32.const {ignore}))")),
            Data::BASE,
            data.escaped(),
        )
    }

    fn manifest(&self, data: &mut Data) -> u32 {
        const INT64: u32 = 1;
        const TEXT: u32 = 4;
        const NULLABLE: u32 = 1 << 8;
        let (name, version) = (data.text("toy"), data.text(self.version));
        let (one, two) = (data.text("1"), data.text("2"));
        let versions = data.words(&[one.0, one.1, two.0, two.1]);
        let (n, extra) = (data.text("n"), data.text("extra"));
        let columns = data.words(&[n.0, n.1, INT64, extra.0, extra.1, TEXT | NULLABLE]);
        let count = 1 + u32::from(self.extra.is_some());
        let lists = [versions, 2, 0, 0, 0, 0, columns, count];
        let no_event_time = [0, 0, 0];
        let no_tables = [0, 0];
        let words: Vec<u32> = [name.0, name.1, version.0, version.1]
            .into_iter()
            .chain(lists)
            .chain(no_event_time)
            .chain(no_tables)
            .collect();
        data.words(&words)
    }

    fn accept(&self, data: &mut Data) -> u32 {
        const INT64: u32 = 2;
        const TEXT: u32 = 5;
        let extra = data.text(self.extra.unwrap_or_default());
        data.align(8);
        let n = self.n.cast_unsigned();
        let low = u32::try_from(n & 0xffff_ffff).expect("it is 32 bits");
        let high = u32::try_from(n >> 32).expect("it is 32 bits");
        let row = data.words(&[INT64, 0, low, high, TEXT, 0, extra.0, extra.1]);
        data.words(&[0, row, 1 + u32::from(self.extra.is_some())])
    }
}

/// A data segment being written.
#[derive(Default)]
struct Data(Vec<u8>);

impl Data {
    const BASE: u32 = 64;

    fn end(&self) -> u32 {
        Self::BASE + u32::try_from(self.0.len()).expect("it is small")
    }

    fn align(&mut self, to: u32) {
        while !self.end().is_multiple_of(to) {
            self.0.push(0);
        }
    }

    /// Address and length of a text.
    fn text(&mut self, text: &str) -> (u32, u32) {
        let at = self.end();
        self.0.extend_from_slice(text.as_bytes());
        (at, self.end() - at)
    }

    /// Address of 32-bit words.
    fn words(&mut self, words: &[u32]) -> u32 {
        self.align(4);
        let at = self.end();
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at
    }

    fn escaped(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, byte| {
            write!(text, "\\{byte:02x}").expect("it is text");
            text
        })
    }
}
