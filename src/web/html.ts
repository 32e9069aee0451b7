import { createHash } from 'node:crypto'

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2128; --soft: #57606a; --paper: #f6f7f9; --card: #fff; --line: #d8dee4; --link: #0b5cad }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9da7b3; --paper: #14181d; --card: #1c2128; --line: #343c46; --link: #7ab7ff }
}
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.6 system-ui, sans-serif }
main { max-width: 34rem; width: 100%; padding: 2rem 2.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem }
h1 { margin: 0 0 .25rem; font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere }
p { margin: .75rem 0 0 }
.soft { color: var(--soft) }
code { padding: .1rem .3rem; border: 1px solid var(--line); border-radius: .3rem; font-size: .9em; overflow-wrap: anywhere }
nav { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; margin-top: 1.5rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
a { color: var(--link) }
`

/** Pages run nothing and load nothing; their one style is allowed by its hash. */
export const PAGE_POLICY = {
  'default-src': ["'none'"],
  'style-src': [`'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`],
  'img-src': ["'self'"],
  'base-uri': ["'none'"],
  'form-action': ["'none'"],
  'frame-ancestors': ["'none'"],
}

export interface Page {
  readonly title: string
  /** HTML: whatever comes from outside must have gone through `escapeHtml`. */
  readonly content: string
}

export function page({ title, content }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${content}
</main>
</body>
</html>
`
}

export function errorPage(status: number, message: string): string {
  return page({
    title: message,
    content: `<h1>${escapeHtml(message)}</h1>\n<p class="soft">${status}</p>\n<nav><a href="/">Start page</a></nav>`,
  })
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
