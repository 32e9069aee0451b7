import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { createReshare } from '../../../src/domain/posts/reshares.js'
import { Aspect } from '../../../src/persistence/models/aspect.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Tag } from '../../../src/persistence/models/tag.js'
import { PUBLIC_POST_LIMITS } from '../../../src/persistence/posts/limits.js'
import { readXml } from '../../../src/protocol/xml/xml.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { type TestPerson, viewerOf } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

let pod: TestPod
let ann: TestPerson
let ben: TestPerson
let quin: Person
let aspectId: number

beforeAll(async () => {
  pod = await buildPod({
    environment: { POD_URL: 'https://p.example', POD_NAME: 'The <red> pod', PAGE_LIMIT: '0' },
  })
  ;({ ann, ben } = await pod.people('ann', 'ben'))
  const { userId } = await viewerOf(pod.pod, ann)
  ;({ id: aspectId } = await Aspect.query(pod.pod.db).findOne({ userId }).throwIfNotFound())
  quin = await addRemotePerson(pod.pod, 'quin@q.example', { profile: { firstName: 'Quin' } })
})
afterAll(() => pod.close())

const publish = async (text: string, input: Partial<Parameters<typeof publishPost>[2]> = {}, person = ann) =>
  publishPost(pod.pod, await viewerOf(pod.pod, person), { text, public: true, ...input })
const personPath = ({ account }: TestPerson) => `/people/${account.guid}`

/** Stores a public post of another pod with tags. */
async function addTaggedPost(text: string, tags: readonly string[], createdAt: Date): Promise<string> {
  const post = await addPost(pod.pod, quin, { text, createdAt })
  await pod.pod.db.transaction((transaction) =>
    Tag.attach(transaction, { postId: post.id, createdAt, isPublic: true }, tags),
  )
  return post.guid
}

describe('GET /tags/:name', () => {
  it('lists public posts with the tag, of this and of other pods, and no private one', async () => {
    await publish('Mine #Kettle')
    await publish('Secret #kettle', { public: false, aspectIds: [aspectId] })
    await addTaggedPost('From elsewhere', ['kettle'], new Date())
    await publish('Other #teapot')

    const { statusCode, headers, body } = await pod.inject('/tags/KETTLE')

    expect(statusCode).toBe(200)
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    expect(body).toContain('<h1 dir="auto">#kettle</h1>')
    expect(body).toContain('<link rel="canonical" href="https://p.example/tags/kettle">')
    expect(body).toContain('<meta name="robots" content="noindex">')
    expect(body).toContain('Mine ')
    expect(body).toContain('From elsewhere')
    expect(body).not.toContain('Secret')
    expect(body).not.toContain('Other')
  })

  it('leads through all pages, in the order of time', async () => {
    const count = PUBLIC_POST_LIMITS.postsOnListPage + 3
    for (let day = 1; day <= count; day += 1)
      await addTaggedPost(`Number ${day}.`, ['many'], new Date(Date.UTC(2020, 0, day)))

    const first = (await pod.inject('/tags/many')).body
    const [, older = ''] = /<a href="([^"]+)" rel="next">Older posts/.exec(first) ?? []
    const second = (await pod.inject(older.replaceAll('&#38;', '&'))).body

    const numbers = (page: string) => Array.from(page.matchAll(/Number (\d+)\./g), ([, number]) => Number(number))
    expect([...numbers(first), ...numbers(second)]).toEqual(Array.from({ length: count }, (_, index) => count - index))
    expect(second).toContain('Newer posts')
    expect(second).not.toContain('Older posts')
  })

  it.each([
    ['/tags/nothing-has-this', 200],
    ['/tags/%21', 404],
    [`/tags/${'a'.repeat(300)}`, 404],
  ])('answers %s with %i', async (path, status) => {
    const { statusCode, body } = await pod.inject(path)

    expect(statusCode).toBe(status)
    if (status === 200) expect(body).toContain('No public post has this tag yet.')
  })

  it('needs as many statements for one post as for a full page', async () => {
    await addTaggedPost('Alone', ['single'], new Date())
    const count = (path: string) => statementsDuring(() => pod.inject(path))

    // Not the pages that other tests have requested, which are cached. A page at a position also looks to its other side.
    const [one, full] = [await count('/tags/single'), await count('/tags/many?before=4102444800000-1')]
    expect(full).toBeLessThanOrEqual(one + 1)
    expect(one).toBeLessThanOrEqual(9)
  })
})

describe('posts of a person whom moderators silenced', () => {
  it('are in no list', async () => {
    const noisy = await addRemotePerson(pod.pod, 'noisy@q.example')
    const post = await addPost(pod.pod, noisy, { text: 'Noise' })
    await pod.pod.db.transaction((transaction) =>
      Tag.attach(transaction, { postId: post.id, createdAt: post.createdAt, isPublic: true }, ['noise']),
    )
    const lists = async () => Promise.all(['/tags/noise', '/public'].map(async (path) => (await pod.inject(path)).body))

    for (const body of await lists()) expect(body).toContain('Noise')
    await Person.query(pod.pod.db).findById(noisy.id).patch({ restriction: 'silence' })
    for (const body of await lists()) expect(body).not.toContain('Noise')
  })
})

describe('GET /public', () => {
  it('lists all public posts, and is linked on the start page', async () => {
    await publish('For everybody')
    await publish('For few', { public: false, aspectIds: [aspectId] })

    const { statusCode, body } = await pod.inject('/public')

    expect(statusCode).toBe(200)
    expect(body).toContain('For everybody')
    expect(body).not.toContain('For few')
    expect((await pod.inject('/')).body).toContain('href="/public"')
  })
})

describe('GET /public/:name.atom', () => {
  it('is a feed of the newest public posts of a person', async () => {
    const reshared = await addPost(pod.pod, quin, { text: 'The **root** & more' })
    const post = await publish('# A title\n\nText with <b> and #tag', {}, ben)
    await createReshare(pod.pod, await viewerOf(pod.pod, ben), reshared.guid)
    await publish('Not for work #nsfw', {}, ben)

    const { statusCode, headers, body } = await pod.inject('/public/ben.atom')
    const feed = readXml(body.replace(/^<\?xml.*\?>\n/, ''), 'InvalidEnvelope')
    const entries = feed.children.filter(({ name }) => name === 'entry')
    const textOf = (index: number, name: string) => entries[index]?.children.find((child) => child.name === name)?.text

    expect([statusCode, headers['content-type']]).toEqual([200, 'application/atom+xml; charset=utf-8'])
    expect(feed.namespace).toBe('http://www.w3.org/2005/Atom')
    expect(entries).toHaveLength(3)
    expect(textOf(0, 'content')).toBeUndefined()
    expect(textOf(0, 'summary')).toContain('Not safe for work')
    expect(textOf(1, 'author')).toContain('Quin')
    expect(textOf(1, 'content')).toContain('<strong>root</strong> &#38; more')
    expect(textOf(2, 'id')).toBe(`https://p.example/posts/${post.guid}`)
    expect(textOf(2, 'title')).toBe('A title')
    expect(textOf(2, 'published')).toBe(post.createdAt.toISOString())
    expect(textOf(2, 'content')).toContain('&#60;b&#62;')
  })

  it('has the photos of a post with their descriptions', async () => {
    const { personId: authorId } = await viewerOf(pod.pod, ben)
    const guid = newGuid()
    await pod.pod
      .db('photos')
      .insert({ guid, authorId, pending: true, name: 'a.png', text: 'A "tree"', width: 10, height: 20 })
    await publish('With a photo', { photoGuids: [guid] }, ben)

    const { body } = await pod.inject('/public/ben.atom')

    expect(body).toContain(
      '&#60;img src=&#34;/uploads/images/scaled_full_a.png&#34; alt=&#34;A &#38;#34;tree&#38;#34;&#34;',
    )
  })

  it('is linked by the page of the person', async () => {
    const { body } = await pod.inject(personPath(ben))

    expect(body).toContain('<link rel="alternate" type="application/atom+xml" href="https://p.example/public/ben.atom"')
  })

  it.each([
    ['/public/nobody.atom', 404],
    ['/public/quin.atom', 404],
    ['/public/ben', 302],
  ])('answers %s with %i', async (path, status) => {
    expect((await pod.inject(path)).statusCode).toBe(status)
  })
})

describe('GET /oembed', () => {
  const oembed = (url: string, more = '') => pod.inject(`/oembed?url=${encodeURIComponent(url)}${more}`)

  it('describes a public post, as the link of its page names it', async () => {
    const post = await publish('Hello <i>all</i>')
    const url = `https://p.example/posts/${post.guid}`

    const { statusCode, headers } = await oembed(url)
    const body = (await oembed(url)).json()

    expect([statusCode, headers['access-control-allow-origin']]).toEqual([200, '*'])
    expect(body).toMatchObject({
      version: '1.0',
      type: 'rich',
      title: 'Hello <i>all</i>',
      provider_name: 'The <red> pod',
    })
    expect(body.html).toContain('Hello &#60;i&#62;all')
    expect(body.html).toContain(`href="${url}"`)
    const page = (await pod.inject(`/posts/${post.guid}`)).body
    expect(page).toContain(`href="https://p.example/oembed?url=${encodeURIComponent(url)}"`)
    expect(page).toContain('<meta property="og:type" content="article">')
    expect(page).toContain(`<meta property="article:published_time" content="${post.createdAt.toISOString()}">`)
  })

  it('is a link without the text for a post that is not safe for work', async () => {
    const post = await publish('Hidden words #nsfw')
    const body = (await oembed(`https://p.example/posts/${post.guid}`)).json()

    expect(body.type).toBe('link')
    expect(body.html).toBeUndefined()
  })

  it('answers 404 for a private post, a post of another pod and any other address', async () => {
    const secret = await publish('Secret', { public: false, aspectIds: [aspectId] })
    const remote = await addPost(pod.pod, quin)
    const urls = [
      `https://p.example/posts/${secret.guid}`,
      `https://p.example/posts/${remote.guid}`,
      `https://other.example/posts/${remote.guid}`,
      'https://p.example/people/x',
      'no url',
    ]

    for (const url of urls) expect([url, (await oembed(url)).statusCode]).toEqual([url, 404])
    expect((await oembed(urls[0] ?? '', '&format=xml')).statusCode).toBe(501)
  })
})
