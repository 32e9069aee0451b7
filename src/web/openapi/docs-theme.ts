/** Adapts the page of the API documentation, which a library makes: dark mode, contrast and narrow screens. */
export const DOCS_STYLE = `
@media (prefers-color-scheme: dark) { html, body { background: #1c2022 } }
@media (prefers-color-scheme: light) {
  .swagger-ui .opblock .opblock-summary-method { color: #fff; text-shadow: none }
  .swagger-ui .opblock.opblock-get .opblock-summary-method { background: #1b5e9e }
  .swagger-ui .opblock.opblock-post .opblock-summary-method { background: #1a7046 }
  .swagger-ui .opblock.opblock-put .opblock-summary-method { background: #8a4b00 }
  .swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #0f6b5c }
  .swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #b3261e }
  .swagger-ui .info .title small { background: #57606a }
  .swagger-ui .info .title small.version-stamp { background: #4a6a00 }
  .swagger-ui .info a, .swagger-ui .info__license a { color: #0b5cad }
  .swagger-ui .btn.authorize { border-color: #1a7046; color: #1a7046 }
  .swagger-ui .btn.authorize svg { fill: #1a7046 }
}
.swagger-ui :is(.json-schema-2020-12, .model-box) button[class*='expand-deep'] { color: inherit }
html.dark-mode .swagger-ui table.headers :is(td, th) { color: #e4e6e6 }
.swagger-ui .schemes-server-container { display: none !important }
.swagger-ui pre.microlight, .swagger-ui pre.microlight code { overflow-x: visible !important; white-space: pre-wrap !important; overflow-wrap: anywhere }
@media (max-width: 40rem) {
  .swagger-ui .wrapper { padding: 0 .75rem }
  .swagger-ui .opblock-tag { flex-wrap: wrap }
  .swagger-ui .opblock-tag small { flex-basis: 100%; padding: 0 }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap }
  .swagger-ui .opblock-summary-path { max-width: 100%; overflow-wrap: anywhere }
  .swagger-ui .response-col_links { display: none }
  .swagger-ui .table-container, .swagger-ui .responses-inner { padding: .75rem; overflow-x: auto }
}
`

/** The style of the library has a dark mode that depends on a class; the class follows the setting of the browser. */
export const DOCS_SCRIPT = `
const dark = matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
follow()
dark.addEventListener('change', follow)
`
