//! Chat templates: rendering by upstream's list, and a real model's answer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{greedy, load, real_model_path, tiny_llama};
use ggml_llama::{ChatMessage, ContextParams, Error, Special, apply_chat_template, builtin_chat_templates};
use ggml_llama_testkit::{models::CHATML, spm};

fn conversation() -> Vec<ChatMessage> {
    vec![
        ChatMessage::new("system", "Be brief."),
        ChatMessage::new("user", "Hello \u{1f999}\nworld"),
        ChatMessage::new("assistant", ""),
        ChatMessage::new("user", "Bye"),
    ]
}

/// By hand, after the template's definition.
fn chatml(messages: &[ChatMessage], add_assistant: bool) -> String {
    let mut text: String =
        messages.iter().map(|m| format!("<|im_start|>{}\n{}<|im_end|>\n", m.role, m.content)).collect();
    if add_assistant {
        text += "<|im_start|>assistant\n";
    }
    text
}

#[test]
fn chatml_by_name_and_by_the_models_template() {
    let template = tiny_llama().chat_template(None).unwrap().unwrap();
    assert_eq!(template, CHATML);
    for add_assistant in [false, true] {
        let expected = chatml(&conversation(), add_assistant);
        assert_eq!(apply_chat_template("chatml", &conversation(), add_assistant).unwrap(), expected);
        assert_eq!(apply_chat_template(&template, &conversation(), add_assistant).unwrap(), expected);
    }
}

#[test]
fn another_template_by_hand() {
    let messages =
        [ChatMessage::new("user", "Hi"), ChatMessage::new("assistant", "Yes?"), ChatMessage::new("user", "Bye")];
    let expected = "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>\
        <|start_header_id|>assistant<|end_header_id|>\n\nYes?<|eot_id|>\
        <|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>\
        <|start_header_id|>assistant<|end_header_id|>\n\n";
    assert_eq!(apply_chat_template("llama3", &messages, true).unwrap(), expected);
}

#[test]
fn templates_that_upstream_does_not_know() {
    for template in ["no-such-template", "{{ messages }}", ""] {
        match apply_chat_template(template, &conversation(), true) {
            Err(Error::ChatTemplate { reason }) => assert!(reason.contains(&format!("{template:?}")), "{reason}"),
            other => panic!("{template:?}: {other:?}"),
        }
    }
    // The message quotes the beginning of a long one only, cut between characters.
    let long = "\u{e9}".repeat(10_000);
    let error = apply_chat_template(&long, &conversation(), true).unwrap_err().to_string();
    assert!(error.len() < 300, "{}", error.len());
}

#[test]
fn no_messages() {
    assert_eq!(apply_chat_template("chatml", &[], false).unwrap(), "");
    assert_eq!(apply_chat_template("chatml", &[], true).unwrap(), "<|im_start|>assistant\n");
}

#[test]
fn texts_with_a_nul_byte() {
    let refused = |template: &str, role: &str, content: &str| {
        let result = apply_chat_template(template, &[ChatMessage::new(role, content)], false);
        match result {
            Err(Error::Nul { what, at }) => (what, at),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused("chat\0ml", "user", "x"), ("the chat template", 4));
    assert_eq!(refused("chatml", "us\0er", "x"), ("a message's role", 2));
    assert_eq!(refused("chatml", "user", "\0"), ("a message's content", 0));
}

#[test]
fn long_messages_and_odd_roles() {
    let long = [ChatMessage::new("a role of my own", "x\u{1f999}".repeat(100_000)), ChatMessage::new("", "")];
    assert!(apply_chat_template("chatml", &long, true).unwrap() == chatml(&long, true));
    let many: Vec<ChatMessage> = (0..5000).map(|i| ChatMessage::new("user", i.to_string())).collect();
    assert!(apply_chat_template("chatml", &many, false).unwrap() == chatml(&many, false));
}

#[test]
fn every_built_in_template_renders() {
    let names = builtin_chat_templates().unwrap();
    assert!(names.len() > 30 && names.iter().any(|name| name == "chatml"), "{names:?}");
    let messages = [ChatMessage::new("user", "QUESTION"), ChatMessage::new("assistant", "ANSWER")];
    for name in names {
        let text = apply_chat_template(&name, &messages, true).unwrap();
        assert!(text.contains("QUESTION") && text.contains("ANSWER"), "{name}: {text}");
    }
}

#[test]
fn a_rendered_prompt_has_its_special_tokens() {
    let model = tiny_llama();
    let text = apply_chat_template(CHATML, &[ChatMessage::new("user", "Hello")], true).unwrap();
    let tokens = model.vocab().tokenize(&text, false, Special::Parse).unwrap();
    let count = |id: i32| tokens.iter().filter(|token| token.0 == id).count();
    assert_eq!((count(spm::IM_START), count(spm::IM_END)), (2, 1));
}

/// Upstream's own answer to this prompt.
#[test]
fn the_real_model_knows_the_capital_of_france() {
    let Some(path) = real_model_path() else { return };
    let model = load(path);
    let template = model.chat_template(None).unwrap().unwrap();
    let messages = [ChatMessage::new("user", "What is the capital of France?")];
    let prompt = apply_chat_template(&template, &messages, true).unwrap();
    let vocab = model.vocab();
    let tokens = vocab.tokenize(&prompt, false, Special::Parse).unwrap();
    let mut context = model.new_context(&ContextParams::default().with_threads(1)).unwrap();
    let answer = greedy(&mut context, &tokens, 40);
    assert!(vocab.is_eog(*answer.last().unwrap()).unwrap());
    assert_eq!(vocab.detokenize(&answer, false).unwrap(), "The capital of France is Paris.");
}
