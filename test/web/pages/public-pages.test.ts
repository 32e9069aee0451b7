import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { createReshare } from '../../../src/domain/posts/reshares.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Photo } from '../../../src/persistence/models/photo.js'
import { Post } from '../../../src/persistence/models/post.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { viewerOf } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

let pod: TestPod
let ann: TestPerson
let ben: TestPerson
let quin: Person

beforeAll(async () => {
  pod = await buildPod({ environment: { POD_URL: 'https://p.example', POD_NAME: 'The <red> pod' } })
  ;({ ann, ben } = await pod.people('ann', 'ben'))
  quin = await addRemotePerson(pod.pod, 'quin@q.example', { profile: { firstName: '<i>Quin</i>' } })
})
afterAll(() => pod.close())

const get = (url: string, headers = {}) => pod.inject({ url, headers: { host: 'evil.example', ...headers } })
const publish = async (input: Partial<Parameters<typeof publishPost>[2]> = {}, person = ann) =>
  publishPost(pod.pod, await viewerOf(pod.pod, person), { text: 'Good morning', public: true, ...input })
const personOf = (person: TestPerson) =>
  Person.query(pod.pod.db).findOne({ guid: person.account.guid }).throwIfNotFound()

async function where(url: string): Promise<readonly [number, unknown]> {
  const { statusCode, headers } = await get(url)
  return [statusCode, headers.location]
}

describe('GET /posts/:guid', () => {
  it('is a page for a public post of local people', async () => {
    const post = await publish({
      text: '# Hi <b>all</b>\n\nwith @{quin@q.example} #Tea and diaspora://ann@p.example/post/nothing-is-there0',
      poll: { question: 'Tea <3?', answers: ['<Yes>', 'No'] },
      location: { address: 'A & B', lat: '1', lng: '2' },
    })

    const { statusCode, headers, body } = await get(`/posts/${post.guid}`)

    expect(statusCode).toBe(200)
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    expect(body).toContain('<title>Hi &#60;b&#62;all&#60;/b&#62; · The &#60;red&#62; pod</title>')
    expect(body).toContain(`<link rel="canonical" href="https://p.example/posts/${post.guid}">`)
    expect(body).toContain(`<a href="/people/${quin.guid}"><bdi>@&#60;i&#62;Quin&#60;/i&#62;</bdi></a>`)
    expect(body).toContain('<a class="tag" href="/tags/tea"><bdi>#Tea</bdi></a>')
    expect(body).toContain('&#60;Yes&#62;')
    expect(body).toContain('A &#38; B')
    expect(body).not.toMatch(/<b>all|<i>|<Yes>|<red>|<script|style=|evil\.example| on[a-z]+=/)
  })

  it('is a page without scripts and without content of other servers', async () => {
    const post = await publish({ text: 'Look: ![cat](https://evil.example/cat.png) [x](javascript:alert(1))' })
    const remote = await Photo.query(pod.pod.db)
      .insert({
        guid: newGuid(),
        authorId: post.authorId,
        postId: post.id,
        public: true,
        remotePath: 'https://cdn.example/',
        name: 'a"><script>.png',
      })
      .returning('*')

    const { headers, body } = await get(`/posts/${post.guid}`)

    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("img-src 'self'")
    expect(policy).not.toMatch(/script-src|unsafe/)
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(body).not.toContain('<script')
    expect(body).not.toContain('href="javascript')
    for (const [, source = ''] of body.matchAll(/src="([^"]*)"/g))
      expect(source).toMatch(/^\/(favicon\.svg$|images\/|uploads\/)/)
    expect(body).toContain(`href="https://cdn.example/${encodeURIComponent(remote.name)}"`)
  })

  it.each(['javascript:alert(1)//', 'data:text/html,', '//cdn.example/', '/elsewhere/'])(
    'shows no picture that lies at %s, neither as a page nor as JSON',
    async (remotePath) => {
      const post = await publish()
      await Photo.query(pod.pod.db).insert({
        guid: newGuid(),
        authorId: post.authorId,
        postId: post.id,
        public: true,
        remotePath,
        name: 'hidden.png',
      })

      const page = await get(`/posts/${post.guid}`)
      const json = await get(`/posts/${post.guid}`, { accept: 'application/json' })

      expect(page.body).not.toContain('hidden.png')
      expect(json.json().photos).toEqual([])
    },
  )

  it('shows pictures that lie here, with their description', async () => {
    const { id: authorId } = await personOf(ann)
    const photo = await Photo.query(pod.pod.db)
      .insert({ guid: newGuid(), authorId, pending: true, name: 'a.png', text: 'A "tree"', width: 10, height: 20 })
      .returning('*')
    const post = await publish({ text: '', photoGuids: [photo.guid] })

    const { body } = await get(`/posts/${post.guid}`)

    expect(body).toContain(
      '<a href="/uploads/images/a.png"><img src="/uploads/images/scaled_full_a.png" alt="A &#34;tree&#34;" width="10" height="20" loading="lazy"></a>',
    )
    expect(body).toContain('<title>A post from ann@p.example')
  })

  it('shows comments, the oldest first, each under its own name', async () => {
    const post = await publish()
    const first = await createComment(pod.pod, await viewerOf(pod.pod, ben), {
      postGuid: post.guid,
      text: 'A **first**',
    })
    await createComment(pod.pod, await viewerOf(pod.pod, ann), { postGuid: post.guid, text: 'A <second>' })

    const { body } = await get(`/posts/${post.guid}`)

    expect(body).toContain(`id="${first.guid}"`)
    expect(body.indexOf('A &#60;second&#62;')).toBeGreaterThan(body.indexOf('A <strong>first</strong>'))
    expect(body).toContain('<h2>2 comments</h2>')
  })

  it('shows of a long comment the beginning, and of many the first fifty', async () => {
    const post = await publish()
    const { id: authorId } = await personOf(ben)
    const rows = Array.from({ length: 52 }, (_, index) => ({
      guid: newGuid(),
      postId: post.id,
      authorId,
      text: `No ${index}.`,
    }))
    await pod.pod.db('comments').insert([{ ...rows[0], guid: newGuid(), text: 'x '.repeat(30_000) }, ...rows])
    await Post.query(pod.pod.db).findById(post.id).patch({ commentsCount: 53 })

    const { body } = await get(`/posts/${post.guid}`)

    expect(body.length).toBeLessThan(60_000)
    expect(body).toContain('x …')
    expect(body).toMatch(new RegExp(`href="/posts/${post.guid}\\?after=\\d+-\\d+#comments" rel="next">Newer comments`))
  })

  describe('with more comments than a page has', () => {
    const times = 120
    let path: string
    let guids: readonly string[]
    beforeAll(async () => {
      const post = await publish()
      const { id: authorId } = await personOf(ben)
      path = `/posts/${post.guid}`
      // Three in each millisecond, so that the id decides.
      const rows = Array.from({ length: times }, (_, index) => ({
        guid: newGuid(),
        postId: post.id,
        authorId,
        text: `No ${index}.`,
        createdAt: new Date(Date.UTC(2024, 0, 1) + Math.floor(index / 3)),
      }))
      await pod.pod.db('comments').insert(rows)
      guids = rows.map(({ guid }) => guid)
    })

    const commentsIn = (html: string) =>
      Array.from(html.matchAll(/<article class="comment" id="(\w+)"/g), ([, guid]) => guid)
    const linkIn = (html: string, text: string) =>
      new RegExp(`<a href="([^"#]*)#comments"[^>]*>${text}</a>`).exec(html)?.[1]?.replaceAll('&#38;', '&')

    it('leads to all of them in both directions, each once', async () => {
      const onwards: unknown[] = []
      let last = path
      for (let next: string | undefined = path; next !== undefined; ) {
        const { body } = await get(next)
        onwards.push(...commentsIn(body))
        last = next
        next = linkIn(body, 'Newer comments')
      }
      const back: unknown[] = []
      for (let next: string | undefined = last; next !== undefined; ) {
        const { body } = await get(next)
        back.unshift(...commentsIn(body))
        next = linkIn(body, 'Older comments')
      }

      expect(onwards).toEqual(guids)
      expect(back).toEqual(guids)
    })

    it('shows the page of one comment', async () => {
      const shown = commentsIn((await get(`${path}?comment=${guids[70]}`)).body)

      expect(shown).toEqual(guids.slice(70, 120))
    })

    it('shows the first page for a place that cannot be read', async () => {
      const first = (await get(path)).body
      for (const query of ['after=x', 'after=1', 'before=1-', 'after=1-1&after=2-2', `comment=${newGuid()}`]) {
        expect([query, commentsIn((await get(`${path}?${query}`)).body)]).toEqual([query, commentsIn(first)])
      }
    })

    it('an empty page has a notice and a link to the first page', async () => {
      const { statusCode, body } = await get(`${path}?before=1-1`)

      expect([statusCode, commentsIn(body)]).toEqual([200, []])
      expect(body).toContain('There are no comments on this page.')
      expect(linkIn(body, 'First comments')).toBe(path)
    })

    it('needs one statement more for a later page than for the first', async () => {
      const next = linkIn((await get(path)).body, 'Newer comments') ?? ''
      await Post.query(pod.pod.db)
        .where({ guid: path.slice('/posts/'.length) })
        .patch({ commentsCount: times })

      const first = await statementsDuring(() => get(path))
      const second = await statementsDuring(() => get(next))

      expect(first).toBeGreaterThan(0)
      expect(second - first).toBe(1) // whether there are older ones
    })
  })

  it('shows the root of a reshare, or a notice if the root is deleted', async () => {
    const root = await addPost(pod.pod, quin, { text: 'The *root*' })
    const reshare = await createReshare(pod.pod, await viewerOf(pod.pod, ann), root.guid)

    const before = await get(`/posts/${reshare.guid}`)
    await Post.query(pod.pod.db).deleteById(root.id)
    const after = await get(`/posts/${reshare.guid}`)

    expect(before.body).toContain('The <em>root</em>')
    expect(before.body).toContain(`href="/people/${quin.guid}"`)
    expect([after.statusCode, after.body.includes('The reshared post was deleted.')]).toEqual([200, true])
  })

  it('hides posts that are not safe for work behind a summary, and from search engines and link previews', async () => {
    const post = await publish({ text: 'A secret #NSFW' })

    const { body } = await get(`/posts/${post.guid}`)

    expect(body).toMatch(/<details class="inner"><summary>[^<]+<\/summary>[\s\S]*A secret/)
    expect(body).toContain('<meta name="robots" content="noindex">')
    expect(body).not.toContain('og:description')
  })

  it('is JSON for clients that accept JSON', async () => {
    const post = await publish({
      text: '**Tea** with @{quin@q.example}',
      poll: { question: 'Tea?', answers: ['Yes', 'No'] },
      location: { address: 'Berlin', lat: '52.5', lng: '13' },
    })

    const { headers, ...response } = await get(`/posts/${post.guid}`, { accept: 'application/json' })

    expect(headers['content-type']).toBe('application/json; charset=utf-8')
    expect(headers['vary']).toContain('accept')
    expect(response.json()).toMatchObject({
      guid: post.guid,
      public: true,
      post_type: 'StatusMessage',
      title: 'Tea with <i>Quin</i>',
      body: '**Tea** with @{quin@q.example}',
      created_at: post.createdAt.toISOString(),
      author: {
        guid: ann.account.guid,
        network_id: 'ann@p.example',
        avatar: 'https://p.example/images/user/default.png',
      },
      mentioned_people: [{ guid: quin.guid, network_id: 'quin@q.example' }],
      interaction_counters: { comments: 0, likes: 0, reshares: 0 },
      photos: [],
      location: { address: 'Berlin', lat: 52.5, lng: 13 },
      poll: { question: 'Tea?', participation_count: 0, poll_answers: [{ answer: 'Yes' }, { answer: 'No' }] },
    })
  })

  it('is a 404 for a private post, an unknown post and a post of a closed account', async () => {
    const { left } = await pod.people('left')
    const gone = await publish({}, left)
    const hidden = await addPost(pod.pod, await personOf(ann), { public: false })
    const foreign = await addPost(pod.pod, quin, { public: false })
    expect((await get(`/posts/${gone.guid}`)).statusCode).toBe(200)
    await closeUser(pod.pod, 'left')

    for (const guid of [gone.guid, hidden.guid, foreign.guid, newGuid(), 'short', '..%2f..%2fetc']) {
      expect([guid, (await get(`/posts/${guid}`)).statusCode]).toEqual([guid, 404])
      const json = await get(`/posts/${guid}`, { accept: 'application/json' })
      expect([guid, json.statusCode]).toEqual([guid, 404])
    }
  })

  it('redirects to the pod of the author of a public post', async () => {
    const { guid } = await addPost(pod.pod, quin)

    expect(await where(`/posts/${guid}`)).toEqual([302, `https://q.example/posts/${guid}`])
  })

  it('the short address of a post leads to its page', async () => {
    const { guid } = await publish()

    expect(await where(`/p/${guid}`)).toEqual([301, `https://p.example/posts/${guid}`])
    expect(await where('/p/999999999999999')).toEqual([404, undefined])
    expect(await where('/p/%0d%0aset-cookie:a=b0123456789')).toEqual([404, undefined])
  })

  it('other addresses of a pod that was taken over lead on', async () => {
    expect(await where('/login')).toEqual([302, '/users/sign_in'])
    expect(await where('/i/0123456789ab')).toEqual([404, undefined])
    for (const [path, status] of [
      ['a'.repeat(64), 200],
      ['x', 404],
    ] as const)
      expect([path, (await get(`/assets/user/default-${path}.png`)).statusCode]).toEqual([path, status])
  })
})

describe('GET /people/:guid', () => {
  it('shows the public profile and the public posts of a person, the newest first', async () => {
    const { eve } = await pod.people('eve')
    await eve.editProfile({
      firstName: '<b>Eve</b>',
      bio: 'I like **tea**',
      location: 'A & B',
      birthday: '1004-02-29',
      tags: ['tea', '<x>'],
      publicDetails: true,
    })
    await publish({ text: 'The first' }, eve)
    await publish({ text: 'The second' }, eve)
    await addPost(pod.pod, await personOf(eve), { public: false, text: 'A secret' })

    const { statusCode, body } = await get(`/people/${eve.account.guid}`)

    expect(statusCode).toBe(200)
    expect(body).toContain('<h1><bdi>&#60;b&#62;Eve&#60;/b&#62;</bdi></h1>')
    expect(body).toContain('eve@p.example')
    expect(body).toContain('I like <strong>tea</strong>')
    expect(body).toContain('<dd><bdi>A &#38; B</bdi></dd>')
    expect(body).toContain('29 February<')
    expect(body).toContain('#&#60;x&#62;')
    expect(body.indexOf('The first')).toBeGreaterThan(body.indexOf('The second'))
    expect(body).not.toMatch(/A secret|<b>Eve|<x>|evil\.example/)
  })

  it('hides private profile fields', async () => {
    const { kim } = await pod.people('kim')
    await kim.editProfile({
      bio: 'secret bio',
      location: 'secret place',
      gender: 'secret',
      birthday: '1990-01-02',
      searchable: false,
    })

    const { body } = await get(`/people/${kim.account.guid}`)

    expect(body).not.toMatch(/secret|January/)
    expect(body).toContain('<meta name="robots" content="noindex">')
    expect(body).toContain('No public posts yet.')
  })

  it('leads to all posts in both directions, each once', async () => {
    const { ida } = await pod.people('ida')
    const author = await personOf(ida)
    for (let made = 0; made < 40; made += 1) {
      await addPost(pod.pod, author, { createdAt: new Date(Date.UTC(2024, 0, 1) + Math.floor(made / 3)) })
      await addPost(pod.pod, author, { public: false })
    }
    const guids = (
      await Post.query(pod.pod.db).where({ authorId: author.id, public: true }).orderBy(['createdAt', 'id'])
    )
      .map(({ guid }) => guid)
      .reverse()
    const path = `/people/${ida.account.guid}`
    const commentsIn = (html: string) =>
      Array.from(html.matchAll(/<a class="soft" href="\/posts\/(\w+)"/g), ([, guid]) => guid)
    const linkIn = (html: string, text: string) => new RegExp(`<a href="([^"]*)"[^>]*>${text}</a>`).exec(html)?.[1]

    const onwards: unknown[] = []
    let last = path
    for (let next: string | undefined = path; next !== undefined; ) {
      const { body } = await get(next)
      onwards.push(...commentsIn(body))
      last = next
      next = linkIn(body, 'Older posts')
    }
    const back: unknown[] = []
    for (let next: string | undefined = last; next !== undefined; ) {
      const { body } = await get(next)
      back.unshift(...commentsIn(body))
      next = linkIn(body, 'Newer posts')
    }

    expect(onwards).toEqual(guids)
    expect(back).toEqual(guids)
  })

  it('cuts long posts and links to the complete text', async () => {
    const { kim } = await pod.people('kim')
    const post = await publish({ text: 'y '.repeat(30_000) }, kim)

    const { body } = await get(`/people/${kim.account.guid}`)

    expect(body.length).toBeLessThan(30_000)
    expect(body).toContain(`<a href="/posts/${post.guid}">Read more<span class="for-readers"> of this post</span></a>`)
  })

  it('redirects to the pod of the person, and answers 404 for unknown people and 410 for closed accounts', async () => {
    const { went } = await pod.people('went')
    await closeUser(pod.pod, 'went')
    const away = await addRemotePerson(pod.pod, 'away@q.example')
    await away.$query(pod.pod.db).patch({ closedAt: new Date() })

    expect(await where(`/people/${quin.guid}`)).toEqual([302, `https://q.example/people/${quin.guid}`])
    expect(await where(`/people/${newGuid()}`)).toEqual([404, undefined])
    expect(await where('/people/x')).toEqual([404, undefined])
    expect(await where(`/people/${went.account.guid}`)).toEqual([410, undefined])
    expect(await where(`/people/${went.account.guid}/stream`)).toEqual([410, undefined])
    expect(await where(`/people/${away.guid}`)).toEqual([410, undefined])
  })

  it('a person is found by their user name', async () => {
    const page = `https://p.example/people/${ann.account.guid}`

    expect(await where('/u/ann')).toEqual([302, page])
    expect(await where('/u/Ann')).toEqual([302, page])
    for (const name of ['nobody', 'went', 'ann@p.example', 'quin', '%00', 'a%2fb']) {
      expect([name, ...(await where(`/u/${name}`))]).toEqual([name, 404, undefined])
    }
  })

  it('accepts the follow links of other software', async () => {
    expect(await where('/people?q=acct:ann@p.example')).toEqual([302, `https://p.example/people/${ann.account.guid}`])
    expect(await where('/people?q=quin%40q.example')).toEqual([302, `https://p.example/people/${quin.guid}`])
    for (const query of ['', '?q=', '?q=ann', '?q=nobody@p.example', '?q=a&q=b']) {
      expect([query, ...(await where(`/people${query}`))]).toEqual([query, 404, undefined])
    }
  })
})

describe('GET /people/:guid/stream', () => {
  it('lists the posts before max_time, and ignores an invalid time', async () => {
    const { tom } = await pod.people('tom')
    const { id } = await personOf(tom)
    const times = ['2024-05-01T00:00:00Z', '2024-05-02T00:00:00Z', '2024-05-03T00:00:00Z'].map((time) => new Date(time))
    const posts = await Promise.all(times.map((createdAt) => addPost(pod.pod, { id }, { createdAt })))
    const guids = posts.map(({ guid }) => guid).reverse()
    const guidsBefore = async (time: number | string): Promise<string[]> => {
      const response = await get(`/people/${tom.account.guid}/stream?max_time=${time}`)
      return response.json().map(({ guid }: { guid: string }) => guid)
    }

    expect(await guidsBefore(Date.parse('2024-05-03T00:00:00Z') / 1_000)).toEqual(guids.slice(1))
    expect(await guidsBefore(0)).toEqual([])
    expect(await guidsBefore('yesterday')).toEqual(guids)
  })

  it('lists the newest public posts as JSON', async () => {
    const { sam } = await pod.people('sam')
    const { id } = await personOf(sam)
    const root = await publish()
    const reshare = await createReshare(pod.pod, await viewerOf(pod.pod, sam), root.guid)
    await addPost(pod.pod, { id }, { public: false })
    const guids: string[] = [reshare.guid]
    for (let made = 0; made < 15; made += 1) guids.unshift((await publish({ text: `${made}` }, sam)).guid)

    const { statusCode, headers, ...response } = await get(`/people/${sam.account.guid}/stream`, {
      accept: 'application/json',
    })

    expect(statusCode).toBe(200)
    expect(headers['content-type']).toBe('application/json; charset=utf-8')
    const items: readonly { guid: string }[] = response.json()
    expect(items.map(({ guid }) => guid)).toEqual(guids.slice(0, 15))
    for (const item of items) {
      expect(item).toMatchObject({
        public: true,
        created_at: expect.stringMatching(/^\d{4}-.*Z$/),
        author: { guid: sam.account.guid },
      })
    }
  })

  it('exists for local users only', async () => {
    expect(await where(`/people/${quin.guid}/stream`)).toEqual([404, undefined])
    expect(await where(`/people/${newGuid()}/stream`)).toEqual([404, undefined])
  })
})

describe('GET /link', () => {
  const link = (text: string) => where(`/link?q=${encodeURIComponent(text)}`)

  it('leads to posts, to polls, to comments and to people', async () => {
    const post = await publish({ poll: { question: 'Tea?', answers: ['Yes', 'No'] } })
    const poll = await post.$relatedQuery('poll', pod.pod.db)
    const viewer = await viewerOf(pod.pod, ben)
    const comment = await createComment(pod.pod, viewer, { postGuid: post.guid, text: 'Hi' })
    const page = `https://p.example/posts/${post.guid}`

    expect(await link(`diaspora://ann@p.example/post/${post.guid}`)).toEqual([302, page])
    expect(await link(`web+diaspora://ann@p.example/status_message/${post.guid}`)).toEqual([302, page])
    expect(await link(`diaspora://ann@p.example/poll/${Reflect.get(poll ?? {}, 'guid')}`)).toEqual([302, page])
    expect(await link(`diaspora://ben@p.example/comment/${comment.guid}`)).toEqual([
      302,
      `${page}?comment=${comment.guid}#${comment.guid}`,
    ])
    expect(await link('diaspora://quin@q.example')).toEqual([302, `https://p.example/people/${quin.guid}`])
    expect(await link('web+diaspora://ann@p.example/')).toEqual([302, `https://p.example/people/${ann.account.guid}`])
    // Written by hand, without escaping anything.
    expect(await where(`/link?q=web+diaspora://ann@p.example/post/${post.guid}`)).toEqual([302, page])
  })

  it('leads nowhere for a private post, an entity of another author, or an invalid link', async () => {
    const post = await publish()
    const hidden = await addPost(pod.pod, await personOf(ann), { public: false })

    for (const text of [
      `diaspora://ann@p.example/post/${hidden.guid}`,
      `diaspora://ben@p.example/post/${post.guid}`,
      `diaspora://ann@p.example/photo/${post.guid}`,
      `diaspora://nobody@p.example`,
      `see diaspora://ann@p.example/post/${post.guid}`,
      '//evil.example',
      '',
    ]) {
      expect([text, ...(await link(text))]).toEqual([text, 404, undefined])
    }
  })
})
