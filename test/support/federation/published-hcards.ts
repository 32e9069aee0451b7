/** The values on a profile page; an omitted field has no element. */
export interface HcardValues {
  readonly guid?: string
  readonly nickname?: string
  readonly fullName?: string
  readonly firstName?: string
  readonly lastName?: string
  readonly searchable?: string
  readonly publicKey?: string
  readonly large?: string
  readonly medium?: string
  readonly small?: string
}

type Page = (values: HcardValues) => string

/** Pages with the markup that these programs publish, in the parts that readers look at. */
export const publishedHcards: Readonly<Record<string, Page>> = {
  'diaspora* 0.5': diasporaPage({ hasNickname: true, hasUrl: true }),
  'diaspora* 0.6': diasporaPage({ hasNickname: true, hasUrl: true, hasContentType: true }),
  'diaspora* 0.7': diasporaPage({ hasNickname: true, hasContentType: true }),
  'diaspora* 0.8': diasporaPage({ hasNickname: true }),
  'diaspora* 0.9': diasporaPage({ hasNickname: true }),
  'diaspora* 0.10': diasporaPage({ hasNickname: true }),
  Friendica: friendicaPage,
  Hubzilla: hubzillaPage,
  Socialhome: socialhomePage,
}

interface DiasporaMarkup {
  readonly hasNickname: boolean
  readonly hasUrl?: boolean
  readonly hasContentType?: boolean
}

/** An XHTML document: an element without content is written as one tag, be it `title`, `h1` or `span`. */
function diasporaPage({ hasNickname, hasUrl = false, hasContentType = false }: DiasporaMarkup): Page {
  return (values) => {
    const name = values.fullName ?? ''
    return `<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.0 Transitional//EN" "http://www.w3.org/TR/REC-html40/loose.dtd">
<html${hasContentType ? ' xmlns="http://www.w3.org/1999/xhtml"' : ''}>
  <head>
${hasContentType ? '    <meta http-equiv="Content-Type" content="text/html; charset=UTF-8" />\n' : ''}    <meta charset="UTF-8"/>
    ${xhtml('title', '', name)}
  </head>
  <body>
    <div id="content">
      ${xhtml('h1', '', name)}
      <div id="content_inner" class="entity_profile vcard author">
        <h2>User profile</h2>
${xhtmlRow('uid', 'span', 'uid', values.guid)}${
  hasNickname ? xhtmlRow('nickname', 'span', 'nickname', values.nickname) : ''
}${xhtmlRow('full_name', 'span', 'fn', values.fullName)}${xhtmlRow(
  'searchable',
  'span',
  'searchable',
  values.searchable,
)}${xhtmlRow('key', 'pre', 'key', values.publicKey)}${xhtmlRow(
  'first_name',
  'span',
  'given_name',
  values.firstName,
)}${xhtmlRow('family_name', 'span', 'family_name', values.lastName)}${
  hasUrl
    ? '        <dl class="entity_url">\n          <dt>Url</dt>\n          <dd>\n            <a id="pod_location" class="url" rel="me" href="https://pod.example/">https://pod.example/</a>\n          </dd>\n        </dl>\n'
    : ''
}${xhtmlImage('photo', 300, values.large)}${xhtmlImage('photo_medium', 100, values.medium)}${xhtmlImage(
  'photo_small',
  50,
  values.small,
)}      </div>
    </div>
  </body>
</html>
`
  }
}

function xhtml(tag: string, attributes: string, text: string): string {
  return text === '' ? `<${tag}${attributes}/>` : `<${tag}${attributes}>${text}</${tag}>`
}

function xhtmlRow(property: string, tag: string, className: string, text: string | undefined): string {
  return text === undefined ? '' : xhtmlProperty(property, xhtml(tag, ` class="${className}"`, text))
}

function xhtmlImage(property: string, size: number, src: string | undefined): string {
  if (src === undefined) return ''
  return xhtmlProperty(property, `<img class="photo avatar" width="${size}" height="${size}" src="${src}"/>`)
}

function xhtmlProperty(property: string, element: string): string {
  const label = property.charAt(0).toUpperCase() + property.slice(1)
  return `        <dl class="entity_${property}">
          <dt>${label}</dt>
          <dd>
            ${element}
          </dd>
        </dl>
`
}

/** A whole page of the site: a visible card with the key in a `div`, and behind it a hidden list without a key. */
function friendicaPage(values: HcardValues): string {
  return `<!DOCTYPE html >
<html prefix="og: https://ogp.me/ns#">
<head>
	<title>${values.fullName ?? ''}</title>
	<base href="https://friendica.example/" />
	<script type="text/javascript">if (1 < 2) { document.title = "</span>" }</script>
</head>
<body id="top">
<nav><ul><li><a class="nav-link" href="/login">Login</a></li></ul></nav>
<aside>
<div class="vcard h-card">
	<div class="tool">
		${html('div', 'fn p-name', values.fullName)}
	</div>
	<div class="p-addr">alice@friendica.example</div>
	<div id="profile-photo-wrapper"><img class="photo u-photo" width="175" height="175" src="/photo/175.jpg" alt="" /></div>
	${values.publicKey === undefined ? '' : `<div class="key" style="display:none;">${values.publicKey}</div>`}
<div style="display:none;">
${htmlRows(values, { quote: "'" })}
</div>
</div>
</aside>
</body>
</html>
`
}

function hubzillaPage(values: HcardValues): string {
  return `<!DOCTYPE html >
<html prefix="og: http://ogp.me/ns#">
<head><title>${values.fullName ?? ''}</title></head>
<body>
<div class="vcard h-card">
	<div id="profile-photo-wrapper"><img class="vcard-photo photo u-photo" src="/photo/profile/l/2" alt=""></div>
	${html('div', 'fn p-name', values.fullName)}
	<div class="reddress">alice&#x40;hubzilla.example</div>
<div style="display:none;">
${htmlRows(values, { quote: '"', microformats: true })}
	${
    values.publicKey === undefined
      ? ''
      : `<dl class="entity_key"><dt>Key</dt><dd><pre class="key">${values.publicKey}</pre></dd></dl>`
  }
</div>
</div>
</body>
</html>
`
}

function socialhomePage(values: HcardValues): string {
  return `<html>
    <head>
        <meta http-equiv="Content-Type" content="text/html; charset=UTF-8" />
        <meta charset="UTF-8" />
        <title>${values.fullName ?? ''}</title>
    </head>
<body>
    <div id='content'>
        <h1>${values.fullName ?? ''}</h1>
        <div id='content_inner'>
            <div class='entity_profile vcard author' id='i'>
                <h2>User profile</h2>
${htmlRows(values, { quote: "'" })}
                ${
                  values.publicKey === undefined
                    ? ''
                    : `<dl class="entity_key"><dt>Key</dt><dd><pre class="key">${values.publicKey}\n</pre></dd></dl>`
                }
            </div>
        </div>
    </div>
</body>
`
}

interface HtmlMarkup {
  readonly quote: string
  readonly microformats?: boolean
}

/** HTML without XHTML's short form: an element without content has an end tag, a picture has none. */
function htmlRows(values: HcardValues, { quote, microformats = false }: HtmlMarkup): string {
  const also = (name: string) => (microformats ? ` p-${name}` : '')
  const row = (property: string, className: string, text: string | undefined) =>
    text === undefined
      ? ''
      : `<dl class=${quote}entity_${property}${quote}><dt>x</dt><dd>${html('span', className, text)}</dd></dl>`
  const image = (property: string, size: number, src: string | undefined) =>
    src === undefined
      ? ''
      : `<dl class="entity_${property}"><dt>Photo</dt><dd><img class="photo${
          microformats ? ' u-photo' : ''
        } avatar" height="${size}" width="${size}" src="${src}"></dd></dl>`
  return [
    row('uid', `uid${also('uid')}`, values.guid),
    row('nickname', `nickname${also('nickname')}`, values.nickname),
    row('full_name', `fn${also('name')}`, values.fullName),
    row('first_name', `given_name${also('given-name')}`, values.firstName),
    row('family_name', `family_name${also('family-name')}`, values.lastName),
    image('photo', 300, values.large),
    image('photo_medium', 100, values.medium),
    image('photo_small', 50, values.small),
    row('searchable', 'searchable', values.searchable),
  ].join('\n')
}

function html(tag: string, className: string, text: string | undefined): string {
  return text === undefined ? '' : `<${tag} class="${className}">${text}</${tag}>`
}
