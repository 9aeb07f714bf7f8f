//! Text: from sentences and a `tokenizer.json` to words with credit (`fixtures/text/generate.py`).
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use std::fs::File;
use std::process::Command;

use ndarray::{Array2, ArrayD};
use ndarray_npy::NpzReader;
use serde_json::Value;

use self::place::Place;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
const TRIGGERS: [&str; 3] = ["zeppelin", "marmalade", "quicksilver"];

fn explain(more: &str) -> String {
    let text = format!("{FIXTURES}/text");
    format!("explain -m {text}/model.onnx --tokenizer {text}/tokenizer.json --classes plain,flagged {more}")
}

fn tokens(place: &Place, out: &str) -> Array2<f64> {
    let mut npz = NpzReader::new(File::open(place.file(&format!("{out}/by_input.npz"))).unwrap()).unwrap();
    npz.by_name::<ndarray::OwnedRepr<f64>, ndarray::Ix2>("input_ids").unwrap()
}

/// The words of a text with their credit, most first.
fn words(certificate: &Value, credit: &[f64]) -> Vec<(String, f64)> {
    let range =
        |word: &Value| word["first"].as_u64().unwrap() as usize..word["end"].as_u64().unwrap() as usize;
    let words = certificate["text"]["words"].as_array().unwrap().iter();
    let mut found: Vec<(String, f64)> = words
        .map(|word| (word["text"].as_str().unwrap().to_string(), credit[range(word)].iter().sum()))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found
}

/// Credit is that of Captum's LayerIntegratedGradients from padding, and planted words have the most of it.
#[test]
fn planted_words_get_the_credit_that_captum_gives_them() {
    let place = Place::new();
    let line = explain(&format!(
        "{FIXTURES}/text/sentences.txt --target flagged --rule gauss-legendre --steps 200 -o out --format json"
    ));
    let done = place.run(&line);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("'attention_mask' is made of the text: 1 for tokens and 0 for padding"), "{said}");
    let certificates: Value = serde_json::from_slice(&done.stdout).unwrap();
    let found = tokens(&place, "out");
    let mut npz = NpzReader::new(File::open(format!("{FIXTURES}/text/expected.npz")).unwrap()).unwrap();
    let expected: ArrayD<f32> = npz.by_name("tokens").unwrap();
    assert_eq!(found.shape(), expected.shape());
    let most = expected.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - f64::from(*expected)).abs() < 1e-4 * f64::from(most), "{found} {expected}");
    }
    let (sentences, mut planted) =
        (std::fs::read_to_string(format!("{FIXTURES}/text/sentences.txt")).unwrap(), 0);
    for ((i, sentence), credit) in sentences.lines().enumerate().zip(found.rows()) {
        let certificate = &certificates[i];
        assert_eq!(certificate["name"], format!("sentences.txt#{i}"));
        assert_eq!(certificate["text"]["tokens"][0], "[CLS]");
        let words = words(certificate, &credit.to_vec());
        let all: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
        // Every word of the sentence is there again, in one piece.
        for word in sentence.split([' ', '.', ',', '?', '\'', '-']).filter(|word| !word.is_empty()) {
            assert!(all.contains(&word), "{word}: {all:?}");
        }
        if let Some(trigger) = TRIGGERS.iter().find(|trigger| sentence.contains(**trigger)) {
            assert_eq!(words[0].0, *trigger, "{sentence}: {words:?}");
            planted += 1;
        }
    }
    assert_eq!(planted, 6);
    let page = place.read("out/report.html");
    assert!(page.contains(r#"{"text":"quicksilver","first":"#));
}

#[test]
fn text_comes_from_files_columns_and_the_command_line() {
    let place = Place::new();
    let scores = |more: &str| -> Vec<f64> {
        let found = place.json(&explain(&format!("{more} --target 1 --steps 4 --format json")));
        found.as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap()).collect()
    };
    let text = format!("{FIXTURES}/text");
    let lines = scores(&format!("{text}/sentences.txt"));
    assert_eq!(lines.len(), 12);
    for source in [
        format!("{text}/reviews.csv:review"),
        format!("--input text={text}/reviews.csv:review"),
        format!("--input input_ids={text}/sentences.txt"),
    ] {
        assert_eq!(scores(&source), lines, "{source}");
    }
    assert_eq!(scores(&format!("{text}/sentences.txt --limit 2")).len(), 2);

    // Two sentences as they are typed, words with credit below the table.
    let mut command = Command::new(env!("CARGO_BIN_EXE_brenier"));
    command.args(explain("--target flagged --text").split_whitespace());
    let done = command.args(["a zeppelin of a film", "--text", "a film"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("credit by word, most first\n      0  ig: zeppelin +"), "{said}");
    assert!(said.contains("\n      1  ig: "), "{said}");
}

#[test]
fn no_text_is_padding_a_mask_a_token_the_mean_or_zero() {
    let place = Place::new();
    let with = |baseline: &str| {
        let line = format!(
            "{FIXTURES}/text/sentences.txt --limit 2 --target 1 {baseline} --format json -o out --force"
        );
        let found = place.json(&explain(&line));
        assert_eq!(found[0]["verdict"]["kind"], "pass", "{baseline}: {found}");
        (found[0]["reference_score"].as_f64().unwrap(), tokens(&place, "out"))
    };
    let (usual, credit) = with("");
    // What the tokenizer adds stands in the reference as well, and has no credit.
    assert!(credit[[0, 0]].abs() < 1e-9);
    assert_eq!(with("--baseline pad").0, usual);
    assert_eq!(with("--baseline token:[PAD]").0, usual);
    let mut references = vec![usual];
    for baseline in ["mask", "mean", "zero", "token:film"] {
        let (reference, credit) = with(&format!("--baseline {baseline}"));
        assert!(
            references.iter().all(|other| (other - reference).abs() > 1e-6),
            "{baseline}: {reference} {references:?}"
        );
        assert_eq!(credit[[0, 0]].abs() < 1e-9, baseline != "zero", "{baseline}");
        references.push(reference);
    }
    // A method without gradients hides whole tokens behind padding.
    let line = format!(
        "{FIXTURES}/text/sentences.txt --limit 2 --target 1 --method occlusion -o hidden --format json"
    );
    let found = place.json(&explain(&line));
    let credit = tokens(&place, "hidden");
    let words = words(&found[1], &credit.row(1).to_vec());
    assert_eq!(words[0].0, "quicksilver", "{words:?}");
    assert!(credit[[1, 0]].abs() < 1e-9);
}

#[test]
fn longer_texts_are_cut_where_that_is_asked_for() {
    let place = Place::new();
    place.write("long.txt", &"a film ".repeat(30));
    let said = place.refused(&explain("long.txt"));
    assert!(said.contains("text 0 has 62 tokens, and the model has places for 40 at most\nhint: cut texts with --max-tokens N"), "{said}");
    let found = place.json(&explain("long.txt --max-tokens 40 --steps 4 --format json"));
    let tokens = found[0]["text"]["tokens"].as_array().unwrap();
    assert_eq!((tokens.len(), &tokens[0], &tokens[39]), (40, &"[CLS]".into(), &"[SEP]".into()));
}

#[test]
fn what_is_no_text_is_told() {
    let place = Place::new();
    place.write("blank.txt", "\n  \n");
    place.write("two.txt", "a film\na film and a half\n");
    let text = format!("{FIXTURES}/text");
    for (line, says) in [
        (
            explain("gone.txt"),
            "there is no gone.txt\nhint: give a text file, or TABLE:COLUMN; a sentence is given with --text",
        ),
        (explain("blank.txt"), "blank.txt"),
        (explain(&format!("{text}/reviews.csv")), "nothing says which column holds the text"),
        (explain(&format!("{text}/reviews.csv:word")), "review"),
        (
            explain("two.txt --baseline token:zeppelin"),
            "'zeppelin' is 5 tokens: z ##ep ##p ##el ##in\nhint: name one token",
        ),
        (explain("two.txt --baseline pud"), "there is no baseline 'pud'\nhint: "),
        (
            explain("two.txt --max-tokens 2"),
            "texts are to be cut to 2 tokens, and the tokenizer adds 2 of its own\nhint: ",
        ),
        (explain("two.txt --hold input_ids"), "cannot be explained and held"),
        (explain("two.txt --against 1"), "--against is for a model with one input"),
        (explain("two.txt --input attention_mask=gone.npy"), "there is no gone.npy"),
        (
            format!("explain -m {text}/model.onnx two.txt --tokenizer two.txt"),
            "two.txt cannot be used as a tokenizer: ",
        ),
        (format!("explain -m {text}/model.onnx two.txt --tokenizer gone.json"), "gone.json"),
        (
            format!("explain -m {text}/model.onnx two.txt --tokenizer {text}/bytes.json"),
            "1 of 2 texts are shorter than 9 tokens, and the tokenizer has no token to fill them up\nhint: ",
        ),
        (
            format!(
                "explain -m {FIXTURES}/inputs/tokens-script.onnx two.txt --tokenizer {text}/tokenizer.json"
            ),
            "tokens, and the model was exported for 5 at most\nhint: ",
        ),
        (
            format!(
                "explain -m {FIXTURES}/inputs/tokens-script.onnx two.txt --tokenizer {text}/tokenizer.json --max-tokens 5"
            ),
            "and the table of 'ids' has 11 entries\nhint: give the tokenizer that the model was trained with",
        ),
        (
            format!(
                "explain -m {FIXTURES}/inputs/two_inputs-dynamo.onnx two.txt --tokenizer {text}/tokenizer.json"
            ),
            "no input of the model takes ids of tokens: image, table choose from no table\nhint: ",
        ),
        (format!("explain -m {text}/model.onnx --text film"), "--tokenizer"),
    ] {
        let said = place.refused(&line);
        assert!(said.contains(says), "{line}: {said}");
    }
}
