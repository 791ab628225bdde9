// Markdown as the console parsed it: a tree of nodes, drawn as elements. No text becomes markup.
import { html } from '../vendor/preact.js';

function drawn(node) {
  const inner = () => node.of.map(drawn);
  switch (node.kind) {
    case 'text':
      return node.text;
    case 'code':
      return html`<code>${node.text}</code>`;
    case 'emphasis':
      return html`<em>${inner()}</em>`;
    case 'strong':
      return html`<strong>${inner()}</strong>`;
    case 'link':
      return node.to ? html`<a href=${node.to} target="_blank" rel="noreferrer">${inner()}</a>` : html`<span>${inner()}</span>`;
    case 'heading':
      return html`<p class="heading h${node.level}">${inner()}</p>`;
    case 'list':
      return node.start === null ? html`<ul>${inner()}</ul>` : html`<ol start=${node.start}>${inner()}</ol>`;
    case 'item':
      return html`<li>${inner()}</li>`;
    case 'quote':
      return html`<blockquote>${inner()}</blockquote>`;
    case 'block':
      return html`<pre>${node.text}</pre>`;
    case 'rule':
      return html`<hr />`;
    default:
      return html`<p>${inner()}</p>`;
  }
}

/** @param {{ nodes: any[] }} props */
export const Markdown = ({ nodes }) => html`<div class="markdown">${nodes.map(drawn)}</div>`;
