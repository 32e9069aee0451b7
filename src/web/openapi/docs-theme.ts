/** Adapts the page of the API documentation, which a library makes: dark mode, contrast, narrow screens, sizes of buttons. */
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
.swagger-ui .btn.execute { border-color: #1b5e9e; background: #1b5e9e }
.swagger-ui .download-contents { background: #57606a }
.swagger-ui .opblock .opblock-summary .view-line-link.copy-to-clipboard, .swagger-ui .opblock-summary .copy-to-clipboard button { flex: none; width: 24px; height: 24px; margin: 0 }
.swagger-ui .microlight span[style*='rgb(211, 99, 99)'] { color: #ff9d9d !important }
.swagger-ui .parameter__in { color: inherit }
.swagger-ui .btn.try-out__btn.cancel { border-color: currentColor; color: #b3261e }
html.dark-mode .swagger-ui .btn.try-out__btn.cancel { color: #ff8a80 !important }
.swagger-ui :is(.json-schema-2020-12, .model-box) button[class*='expand-deep'] { color: inherit }
html.dark-mode .swagger-ui table.headers :is(td, th) { color: #e4e6e6 }
.swagger-ui .schemes-server-container { display: none !important }
.swagger-ui pre.microlight, .swagger-ui pre.microlight code { overflow-x: visible !important; white-space: pre-wrap !important; overflow-wrap: anywhere }
@media (max-width: 40rem) {
  .swagger-ui .wrapper { padding: 0 .75rem }
  .swagger-ui .opblock-tag { flex-wrap: wrap }
  .swagger-ui .opblock-tag small { flex-basis: 100%; padding: 0 }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap }
  .swagger-ui .opblock .opblock-section-header, .swagger-ui .btn-group { flex-wrap: wrap }
  .swagger-ui .opblock-summary-path { max-width: 100%; overflow-wrap: anywhere }
  .swagger-ui .response-col_links { display: none }
  .swagger-ui .table-container, .swagger-ui .responses-inner { padding: .75rem; overflow-x: auto }
}
`

/**
 * Attributes that the elements of the library need for screen readers and keyboards; null removes one. A link inside a button
 * cannot be reached; the button itself changes the address of the page.
 */
const CORRECTIONS: readonly (readonly [selector: string, attributes: Readonly<Record<string, string | null>>])[] = [
  ['.information-container', { role: 'region', 'aria-label': 'Introduction' }],
  ['.opblock-tag, .models > h4', { 'aria-level': '2' }],
  ['.opblock-summary-control a[href]', { href: null }],
  ['.opblock-section-header h4, .opblock-title', { 'aria-level': '3' }],
  ['.responses-inner h4, .responses-inner h5', { 'aria-level': '4' }],
  ['pre.microlight', { tabindex: '0' }],
  ['.responses-table', { role: null }],
  ['textarea.body-param__text', { 'aria-label': 'Request body' }],
  ['.modal-ux', { role: 'dialog', 'aria-modal': 'true', 'aria-label': 'Available authorizations' }],
  ['.modal-ux h3', { 'aria-level': '2' }],
  ['.modal-ux h4', { 'aria-level': '3' }],
  ['.modal-ux .close-modal', { 'aria-label': 'Close' }],
  ['.modal-ux .modal-btn', { 'aria-label': null }],
]

/**
 * The style of the library has a dark mode that depends on a class; the class follows the setting of the browser. Elements get
 * their corrections when the library creates them.
 */
export const DOCS_SCRIPT = `
const dark = matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
follow()
dark.addEventListener('change', follow)
document.documentElement.lang = 'en'

const corrections = ${JSON.stringify(CORRECTIONS)}
const correct = () => {
  for (const [selector, attributes] of corrections) {
    for (const element of document.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) {
        if (value === null) element.removeAttribute(name)
        else if (element.getAttribute(name) !== value) element.setAttribute(name, value)
      }
    }
  }
  for (const row of document.querySelectorAll('[data-param-name], [data-property-name]')) {
    const { paramName, propertyName } = row.dataset
    for (const field of row.querySelectorAll('select, input, textarea')) {
      field.setAttribute('aria-label', propertyName ?? paramName)
    }
  }
}
new MutationObserver(correct).observe(document, { childList: true, subtree: true })
`
