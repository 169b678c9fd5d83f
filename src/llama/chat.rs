//! Chat messages to prompts, by upstream's built-in list of templates.

use std::ffi::CString;

use crate::error::{Error, Result};
use crate::raw::{fault, runtime};
use crate::sys;
use crate::util::cstr::{from_c, to_c};

/// One message of a conversation.
#[doc(alias = "llama_chat_message")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ChatMessage {
    /// Who speaks: `system`, `user`, `assistant`, or what the template knows.
    pub role: String,
    /// What they say.
    pub content: String,
}

impl ChatMessage {
    /// A message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> ChatMessage {
        ChatMessage { role: role.into(), content: content.into() }
    }
}

/// Renders messages with a template: the text of one (as [`Model::chat_template`](crate::Model::chat_template) gives it)
/// or the name of a built-in one, such as `chatml`.
///
/// Upstream recognises templates from a list and does not interpret them; one that it does not recognise is an error,
/// never a silent fallback. With `add_assistant` the text ends where the assistant's answer begins.
///
/// Tokenize the result with [`Special::Parse`](crate::Special::Parse) and without added special tokens where the template
/// writes them itself.
///
/// ```
/// # fn main() -> ggml_llama::Result<()> {
/// use ggml_llama::{ChatMessage, apply_chat_template};
/// let prompt = apply_chat_template("chatml", &[ChatMessage::new("user", "Hello")], true)?;
/// assert_eq!(prompt, "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::ChatTemplate`] for a template that upstream does not recognise, [`Error::Nul`] for texts with a NUL byte.
#[doc(alias = "llama_chat_apply_template")]
pub fn apply_chat_template(template: &str, messages: &[ChatMessage], add_assistant: bool) -> Result<String> {
    runtime::start()?;
    let c_template = to_c("the chat template", template)?;
    let texts = messages
        .iter()
        .map(|m| Ok((to_c("a message's role", m.role.as_str())?, to_c("a message's content", m.content.as_str())?)))
        .collect::<Result<Vec<(CString, CString)>>>()?;
    let chat: Vec<sys::llama_chat_message> = texts
        .iter()
        .map(|(role, content)| sys::llama_chat_message { role: role.as_ptr(), content: content.as_ptr() })
        .collect();
    let total: usize = messages.iter().map(|m| m.role.len() + m.content.len()).sum();
    // The length comes back as a 32-bit number; a role adds a few dozen bytes to each message.
    let longest = total.saturating_add(messages.len().saturating_mul(256));
    if longest > i32::MAX as usize {
        return Err(Error::ChatTemplate {
            reason: format!("messages of {total} bytes; at most 2 GiB can be rendered"),
        });
    }
    let mut buffer = vec![0u8; longest + 256];
    loop {
        let length = fault::call(|status| {
            // SAFETY: template and messages end with NUL and live through the call; the buffer has this length.
            unsafe {
                sys::gl_chat_apply_template(
                    status,
                    c_template.as_ptr(),
                    chat.as_ptr(),
                    chat.len(),
                    add_assistant,
                    buffer.as_mut_ptr().cast(),
                    i32::try_from(buffer.len()).unwrap_or(i32::MAX),
                )
            }
        })
        .map_err(|fault| Error::ChatTemplate { reason: fault.message })?;
        let Ok(length) = usize::try_from(length) else {
            let start: String = template.chars().take(60).collect();
            return Err(Error::ChatTemplate {
                reason: format!("upstream does not recognise the template that begins with {start:?}"),
            });
        };
        if length <= buffer.len() {
            buffer.truncate(length);
            return String::from_utf8(buffer)
                .map_err(|_| Error::ChatTemplate { reason: "the result is not UTF-8".to_owned() });
        }
        buffer.resize(length, 0);
    }
}

/// Names of the built-in templates.
///
/// # Errors
///
/// [`Error::MissingCpuFeatures`] when this machine cannot run the compiled code.
#[doc(alias = "llama_chat_builtin_templates")]
pub fn builtin_chat_templates() -> Result<Vec<String>> {
    runtime::start()?;
    // SAFETY: with no buffer the function only counts.
    let count = unsafe { sys::llama_chat_builtin_templates(std::ptr::null_mut(), 0) };
    let mut names = vec![std::ptr::null(); usize::try_from(count).unwrap_or(0)];
    // SAFETY: the buffer has this length; the names are constants.
    unsafe { sys::llama_chat_builtin_templates(names.as_mut_ptr(), names.len()) };
    // SAFETY: as above.
    Ok(names.into_iter().filter_map(|name| unsafe { from_c(name) }).collect())
}
