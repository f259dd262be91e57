//! Components that are refused before the first event, and what is said of them.

use preflight::rules::cache::CodeCache;
use preflight::rules::{Limits, LoadError, Sandbox, load};
use preflight_tests::handmade::{component, contract};
use preflight_tests::{Pipeline, paths};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const VALIDATE: &str = "(param i32 i32 i32 i32 i32 i32 i64) (result i32) unreachable";
/// A manifest of zeros: no name, no versions, no columns.
const EMPTY_MANIFEST: &str = "(result i32) i32.const 64";

fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| Sandbox::new().unwrap())
}

fn load(limits: &Limits, wasm: &[u8]) -> Result<preflight::rules::Rule, LoadError> {
    load::bytes(sandbox(), limits, &CodeCache::new(paths::scratch().join("code")), wasm)
}

/// What is said of a component that is refused.
#[track_caller]
fn refusal(wasm: &[u8]) -> String {
    load(&Limits::default(), wasm).expect_err("it was not refused").to_string()
}

#[track_caller]
fn says(refusal: &str, words: &[&str]) {
    for word in words {
        assert!(refusal.contains(word), "{word:?} is not in: {refusal}");
    }
}

/// A validator's core module by its functions.
fn validator_module(fields: &str, describe: &str, validate: &str) -> String {
    format!(
        "(module {fields}
           (memory (export \"memory\") 1)
           (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) i32.const 1024)
           (func (export \"preflight:rules/validation@0.1.0#describe\") {describe})
           (func (export \"preflight:rules/validation@0.1.0#validate\") {validate}))"
    )
}

fn validator(describe: &str) -> Vec<u8> {
    component(&contract(), "validator", &validator_module("", describe, VALIDATE))
}

fn hostile_bytes() -> Vec<u8> {
    fs::read(paths::rule("hostile-rule")).unwrap()
}

#[test]
fn a_good_component_is_taken() {
    let rule = load(&Limits::default(), &hostile_bytes()).unwrap();
    assert_eq!(rule.manifest.name, "hostile-rule");
    assert_eq!(rule.size, hostile_bytes().len() as u64);
}

#[test]
fn a_core_module_is_to_be_packed() {
    says(&refusal(&wat::parse_str("(module)").unwrap()), &["core module, not a component", "`preflight pack`"]);
}

#[test]
fn what_is_not_wasm_is_told_so() {
    for other in [&b"name = \"not wasm\"\n"[..], b"", b"\0as", b"\0asm", b"\x7fELF\x02\x01\x01\0\0\0"] {
        says(&refusal(other), &["not WebAssembly"]);
    }
}

#[test]
fn a_truncated_component_does_not_compile() {
    let whole = hostile_bytes();
    for size in [8, 9, 100, whole.len() / 2, whole.len() - 1] {
        says(&refusal(&whole[..size]), &[]);
    }
    says(&refusal(&whole[..whole.len() / 2]), &["does not compile"]);
}

#[test]
fn a_component_with_a_flipped_byte_does_not_end_the_process() {
    let whole = hostile_bytes();
    for step in 0..60 {
        let mut flipped = whole.clone();
        let at = 8 + step * (whole.len() - 8) / 60;
        flipped[at] ^= 0xff;
        // Some bytes, of names or data, may be anything.
        load(&Limits::default(), &flipped).map_or_else(|error| drop(error.to_string()), drop);
    }
}

#[test]
fn a_proposal_that_is_switched_off_is_refused() {
    for module in ["(memory i64 1)", "(memory 1) (memory 1)", "(memory 1 2 shared)", "(type (struct))"] {
        let component = format!("(component (core module {module}))");
        says(&refusal(&wat::parse_str(component).unwrap()), &["does not compile"]);
    }
}

#[test]
fn a_component_above_the_limit_is_refused_before_it_is_read() {
    let size = hostile_bytes().len() as u64;
    let limits = |component| Limits { component, ..Limits::default() };
    assert!(load(&limits(size), &hostile_bytes()).is_ok());
    let above = load(&limits(size - 1), &hostile_bytes()).unwrap_err().to_string();
    says(&above, &[&format!("{size} bytes"), "`limits.component`"]);
    // 200 MB that take no room on the disk.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("huge.wasm");
    fs::File::create(&path).unwrap().set_len(200_000_000).unwrap();
    says(&load::read_bounded(&path, 64 << 20).unwrap_err().to_string(), &["200000000 bytes", "`limits.component`"]);
    let endless = load::read_bounded(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string();
    says(&endless, &["`limits.component`"]);
}

#[test]
fn a_wasi_import_is_named() {
    let wit = format!(
        "{}\nworld clocked {{ include validator; import wasi:clocks/wall-clock@0.2.0; }}\n\
         package wasi:clocks@0.2.0 {{ interface wall-clock {{ now: func() -> u64; }} }}\n",
        contract()
    );
    let import = "(import \"wasi:clocks/wall-clock@0.2.0\" \"now\" (func (result i64)))";
    let component = component(&wit, "clocked", &validator_module(import, EMPTY_MANIFEST, VALIDATE));
    says(&refusal(&component), &["imports wasi:clocks/wall-clock@0.2.0#now", "no WASI"]);
}

#[test]
fn an_unknown_function_of_our_own_package_is_named() {
    let wit = contract().replace("  emit: func", "  flush: func();\n  emit: func");
    let import = "(import \"preflight:rules/log@0.1.0\" \"flush\" (func))";
    let component = component(&wit, "validator", &validator_module(import, EMPTY_MANIFEST, VALIDATE));
    says(&refusal(&component), &["imports preflight:rules/log@0.1.0#flush", "may import only"]);
}

#[test]
fn an_import_with_another_signature_is_refused() {
    let wit = contract().replace("panicked: func(text: string)", "panicked: func(code: u32)");
    let import = "(import \"preflight:rules/log@0.1.0\" \"panicked\" (func (param i32)))";
    let component = component(&wit, "validator", &validator_module(import, EMPTY_MANIFEST, VALIDATE));
    says(&refusal(&component), &["not a validator", "panicked"]);
}

#[test]
fn an_export_of_another_type_is_refused() {
    let wit = contract().replace("    publish-time: micros,\n", "");
    let validate = "(param i32 i32 i32 i32 i32 i32) (result i32) unreachable";
    let component = component(&wit, "validator", &validator_module("", EMPTY_MANIFEST, validate));
    says(&refusal(&component), &["not a validator", "type mismatch", "expected record of 4 fields"]);
}

#[test]
fn an_enricher_is_not_taken_for_a_validator() {
    let module = "(module
        (memory (export \"memory\") 1)
        (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) i32.const 1024)
        (func (export \"preflight:rules/enrichment@0.1.0#describe\") (result i32) i32.const 64)
        (func (export \"preflight:rules/enrichment@0.1.0#enrich\") (param i32 i32) (result i32) unreachable))";
    says(&refusal(&component(&contract(), "enricher", module)), &["enricher", "a validator is wanted"]);
}

#[test]
fn a_component_that_exports_nothing_is_not_a_validator() {
    says(&refusal(&wat::parse_str("(component)").unwrap()), &["not a validator", "validation"]);
}

#[test]
fn a_component_that_misbehaves_at_its_start_is_refused() {
    let spins = refusal(&validator("(result i32) (loop br 0) unreachable"));
    says(&spins, &["trial instantiation", "`describe` took more than 200000000 units of fuel", "(fuel)"]);
    says(&refusal(&validator("(result i32) unreachable")), &["trial instantiation", "(panic)"]);
    says(&refusal(&validator("(result i32) (i32.div_u (i32.const 1) (i32.const 0))")), &["divide by zero", "(trap)"]);
    says(&refusal(&validator("(result i32) i32.const 0x7fff0000")), &["ABI", "(abi)"]);
    let start = validator_module("(func $start unreachable) (start $start)", EMPTY_MANIFEST, VALIDATE);
    says(&refusal(&component(&contract(), "validator", &start)), &["trial instantiation", "(panic)"]);
    let huge = validator_module("", EMPTY_MANIFEST, VALIDATE).replace("\"memory\") 1)", "\"memory\") 2000)");
    says(&refusal(&component(&contract(), "validator", &huge)), &["of memory, the limit is", "(memory)"]);
}

#[test]
fn every_problem_of_a_manifest_is_named() {
    says(
        &refusal(&validator(EMPTY_MANIFEST)),
        &["manifest is not usable", "its name is empty", "semantic version", "no event version", "no columns"],
    );
}

/// A pipeline whose only component is a file of its own.
fn pipeline_with(name: &str, make: impl FnOnce(&Path)) -> (Pipeline, PathBuf) {
    let directory = tempfile::tempdir().unwrap().keep();
    let path = directory.join(name);
    make(&path);
    (Pipeline::with_rule(&path, "ok\n").warm(), directory)
}

#[track_caller]
fn check_says(name: &str, make: impl FnOnce(&Path), words: &[&str]) {
    let (pipeline, directory) = pipeline_with(name, make);
    for ended in [pipeline.check().expect(2), pipeline.run().expect(2)] {
        says(&ended.stderr, &["rules.components.\"1\"", name]);
        says(&ended.stderr, words);
    }
    assert!(!pipeline.database().exists(), "nothing was made");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn check_and_run_refuse_with_the_key_and_the_file() {
    check_says("missing.wasm", |_| {}, &["cannot read it: No such file"]);
    check_says("folder.wasm", |path| fs::create_dir(path).unwrap(), &["is a directory"]);
    check_says("empty.wasm", |path| fs::write(path, "").unwrap(), &["not WebAssembly"]);
    check_says("text.wasm", |path| fs::write(path, "hello").unwrap(), &["not WebAssembly"]);
    let module = wat::parse_str("(module)").unwrap();
    check_says("module.wasm", |path| fs::write(path, module).unwrap(), &["core module", "preflight pack"]);
    let whole = hostile_bytes();
    check_says("cut.wasm", |path| fs::write(path, &whole[..30_000]).unwrap(), &["does not compile"]);
    check_says("spins.wasm", |path| fs::write(path, validator(EMPTY_MANIFEST)).unwrap(), &["no columns"]);
}
