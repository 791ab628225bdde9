//! Markdown as a small tree: twelve kinds of nodes that a viewer draws as it likes. HTML in the
//! text stays text.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use serde::Serialize;

/// Longer texts are cut.
const TEXT: usize = 64 << 10;
/// The most nodes of one text.
const NODES: usize = 4_000;
/// Deeper nodes become children of the last one that is not too deep.
const DEPTH: usize = 16;

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum MarkdownNode {
    Paragraph {
        of: Vec<Self>,
    },
    Heading {
        level: u8,
        of: Vec<Self>,
    },
    /// With a start, its items are numbered.
    List {
        start: Option<u64>,
        of: Vec<Self>,
    },
    Item {
        of: Vec<Self>,
    },
    Quote {
        of: Vec<Self>,
    },
    /// A block of code.
    Block {
        language: String,
        text: String,
    },
    Rule,
    Text {
        text: String,
    },
    Code {
        text: String,
    },
    Emphasis {
        of: Vec<Self>,
    },
    Strong {
        of: Vec<Self>,
    },
    /// Without an address if that is not `http` or `https`.
    Link {
        to: Option<String>,
        of: Vec<Self>,
    },
}

use MarkdownNode as Node;

/// The nodes of a text.
pub(crate) fn nodes(text: &str) -> Vec<Node> {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut building = Building::default();
    for event in Parser::new(&text[..end]) {
        building.take(event);
    }
    let is_cut = end < text.len() || building.count >= NODES;
    let mut nodes = building.finish();
    if is_cut {
        nodes.push(Node::Paragraph { of: vec![Node::Text { text: "…".to_owned() }] });
    }
    nodes
}

/// Whether a text of this type is Markdown.
pub(crate) fn is_markdown(mime: Option<&str>) -> bool {
    let essence = mime.map(|mime| mime.split(';').next().unwrap_or_default().trim());
    essence.is_some_and(|it| ["text/markdown", "text/x-markdown"].contains(&it))
}

#[derive(Default)]
struct Building {
    /// The open nodes, each with what it holds so far; the whole text is the lowest.
    open: Vec<(Option<Node>, Vec<Node>)>,
    done: Vec<Node>,
    /// Open nodes that are too deep to be nodes of their own.
    skipped: usize,
    count: usize,
}

impl Building {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.begin(tag),
            Event::End(_) => self.end(),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) => self.add(Node::Code { text: text.into_string() }),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => self.add(Node::Rule),
            // Extensions are off.
            _ => {}
        }
    }

    fn begin(&mut self, tag: Tag<'_>) {
        if self.open.len() >= DEPTH || self.count >= NODES {
            self.skipped += 1;
            return;
        }
        let node = match tag {
            Tag::Heading { level, .. } => Node::Heading { level: level as u8, of: Vec::new() },
            Tag::List(start) => Node::List { start, of: Vec::new() },
            Tag::Item => Node::Item { of: Vec::new() },
            Tag::BlockQuote(_) => Node::Quote { of: Vec::new() },
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                Node::Block { language, text: String::new() }
            }
            Tag::Emphasis => Node::Emphasis { of: Vec::new() },
            Tag::Strong => Node::Strong { of: Vec::new() },
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                Node::Link { to: address(&dest_url), of: Vec::new() }
            }
            // HTML too: its lines are a paragraph of text.
            _ => Node::Paragraph { of: Vec::new() },
        };
        self.count += 1;
        self.open.push((Some(node), Vec::new()));
    }

    fn end(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        let Some((Some(node), children)) = self.open.pop() else { return };
        let node = filled(node, children);
        self.put(node);
    }

    fn text(&mut self, text: &str) {
        // Neighbouring texts are one node.
        let last = self.open.last_mut().map_or(&mut self.done, |(_, children)| children).last_mut();
        if let Some(Node::Text { text: before }) = last {
            before.push_str(text);
        } else {
            self.add(Node::Text { text: text.to_owned() });
        }
    }

    fn add(&mut self, node: Node) {
        if self.count < NODES {
            self.count += 1;
            self.put(node);
        }
    }

    fn put(&mut self, node: Node) {
        self.open.last_mut().map_or(&mut self.done, |(_, children)| children).push(node);
    }

    fn finish(mut self) -> Vec<Node> {
        self.skipped = 0;
        while !self.open.is_empty() {
            self.end();
        }
        self.done
    }
}

/// A node with its children.
fn filled(node: Node, of: Vec<Node>) -> Node {
    match node {
        Node::Paragraph { .. } => Node::Paragraph { of },
        Node::Heading { level, .. } => Node::Heading { level, of },
        Node::List { start, .. } => Node::List { start, of },
        Node::Item { .. } => Node::Item { of },
        Node::Quote { .. } => Node::Quote { of },
        Node::Emphasis { .. } => Node::Emphasis { of },
        Node::Strong { .. } => Node::Strong { of },
        Node::Link { to, .. } => Node::Link { to, of },
        Node::Block { language, .. } => {
            let text = of.into_iter().map(|node| match node {
                Node::Text { text } => text,
                _ => String::new(),
            });
            Node::Block { language, text: text.collect() }
        }
        other => other,
    }
}

/// An address that may be opened.
fn address(to: &str) -> Option<String> {
    let scheme = to.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.filter(|it| it == "http" || it == "https").map(|_| to.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(nodes: &[Node]) -> String {
        let each = nodes.iter().map(|node| match node {
            Node::Text { text } => text.clone(),
            Node::Code { text } => format!("`{text}`"),
            Node::Block { language, text } => format!("[{language}|{text}]"),
            Node::Rule => "---".to_owned(),
            Node::Paragraph { of } => format!("p({})", shown(of)),
            Node::Heading { level, of } => format!("h{level}({})", shown(of)),
            Node::List { start, of } => format!("list{}({})", start.unwrap_or(0), shown(of)),
            Node::Item { of } => format!("item({})", shown(of)),
            Node::Quote { of } => format!("quote({})", shown(of)),
            Node::Emphasis { of } => format!("em({})", shown(of)),
            Node::Strong { of } => format!("strong({})", shown(of)),
            Node::Link { to, of } => {
                format!("link {}({})", to.as_deref().unwrap_or("-"), shown(of))
            }
        });
        each.collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(shown(&nodes(text)), expected, "{text}");
    }

    #[test]
    fn blocks_and_words_are_nodes() {
        check("# A *b*\n\nc `d`\ne", "h1(A em(b))p(c `d` e)");
        check("2. one\n3. **two**", "list2(item(one)item(strong(two)))");
        check("- a\n  - b", "list0(item(alist0(item(b))))");
        check("> said\n\n---\n```rust\nlet a;\n```", "quote(p(said))---[rust|let a;\n]");
    }

    #[test]
    fn html_stays_text_and_only_web_addresses_are_links() {
        check("a <b onclick=x>c</b>", "p(a <b onclick=x>c</b>)");
        check("<script>alert(1)</script>", "p(<script>alert(1)</script>)");
        check("[a](https://b.c) [d](javascript:e)", "p(link https://b.c(a) link -(d))");
        check("![pixel](http://b.c/d.png)", "p(link http://b.c/d.png(pixel))");
    }

    #[test]
    fn a_hostile_text_is_cut_and_never_deep() {
        let depth = |nodes: &[Node]| {
            let (mut depth, mut level) = (0, nodes.to_vec());
            while !level.is_empty() {
                depth += 1;
                let next = level.into_iter().filter_map(|node| match node {
                    Node::Quote { of } | Node::Paragraph { of } => Some(of),
                    _ => None,
                });
                level = next.flatten().collect();
            }
            depth
        };
        assert!(depth(&nodes(&">".repeat(5_000))) <= DEPTH + 1);
        assert!(depth(&nodes(&format!("{}deep", "> ".repeat(5_000)))) <= DEPTH + 1);
        let many = nodes(&"*a* ".repeat(TEXT));
        let Some(Node::Paragraph { of }) = many.last() else { panic!("{many:?}") };
        assert_eq!(shown(of), "…");
        assert!(serde_json::to_string(&many).unwrap().len() < 16 * TEXT);
    }
}
