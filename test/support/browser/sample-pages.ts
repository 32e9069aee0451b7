import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { createReshare } from '../../../src/domain/posts/reshares.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Photo } from '../../../src/persistence/models/photo.js'
import { Post } from '../../../src/persistence/models/post.js'
import { addPost } from '../databases/rows.js'
import { plain } from '../files/pictures.js'
import { freePort } from '../http/free-port.js'
import { approveClient, registerTestClient } from '../http/oidc-client.js'
import type { TestPerson } from '../people/local-users.js'
import { viewerOf } from '../people/local-users.js'
import { addRemotePerson } from '../people/remote-people.js'
import { buildPod, type TestPod } from '../pods/build-pod.js'
import { openBrowser } from './scriptless-browser.js'

export const OLDEST_POST = 'The oldest post'
export const LAST_COMMENT = 'The last comment'

/** A listening pod with a page of every kind. */
export interface SamplePages extends AsyncDisposable {
  readonly pod: TestPod
  readonly url: string
  /** Paths by name, for visitors. */
  readonly pages: Readonly<Record<SamplePage, string>>
  /** Guids of the comments under `comments`, in their order. */
  readonly comments: readonly string[]
  /** Paths that need a sign-in; the consent page has a fresh request each time. */
  readonly signedInPages: Readonly<Record<string, () => string>>
  close(): Promise<void>
}

const SAMPLES = {
  headings:
    '### Small first\n\n# Then large\n\ntext\n\n##### and small\n\n> quoted\n\n```\nconst code = "a long line of code that does not fit on a phone at all"\n```\n\n- one\n- two #tag',
  long: 'A paragraph of text that goes on for a while, as people write it. '.repeat(60),
  nsfw: 'Hidden #nsfw',
  arabic:
    'صباح الخير يا أصدقاء! هذا منشور باللغة العربية مع #وسم\n\n> هذا اقتباس من كتاب قديم\n\n```\nnpm start -- --port 3000\n```\n\n- البند الأول\n- البند الثاني\n\nAn English paragraph, too.',
} as const

type SamplePage = keyof typeof SAMPLES | (typeof OTHERS)[number]

const OTHERS = [
  ...([
    'start',
    'apps',
    'sign-in',
    'sign-up',
    'missing',
    'poll',
    'photos',
    'reshare',
    'reshare-gone',
    'empty',
    'comments',
  ] as const),
  ...(['person', 'person-arabic', 'person-empty', 'follow', 'follow-wrong', 'tag', 'public'] as const),
]

export async function openSamplePages(): Promise<SamplePages> {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const uploadsDir = await mkdtemp(join(tmpdir(), 'pod-pages-'))
  await mkdir(join(uploadsDir, 'images'))
  const pod = await buildPod({
    environment: {
      POD_URL: url,
      POD_NAME: 'The pod of Thornbury',
      REGISTRATIONS: 'open',
      UPLOADS_DIR: uploadsDir,
      PAGE_LIMIT: '0',
      SIGN_IN_LIMIT: '0',
      AUTHORIZATION_LIMIT: '0',
    },
  })
  await pod.app.listen({ port, host: 'localhost' })
  const { ann, noor, ben } = await pod.people('ann', 'noor', 'ben')
  const quin = await addRemotePerson(pod.pod, 'quin@q.example', { profile: { firstName: 'Quin', lastName: 'Q.' } })
  await ann.editProfile({
    firstName: 'Ann',
    lastName: 'Avery',
    bio: '## Hello\n\nI like **tea** and long walks.',
    location: 'A small town',
    gender: 'female',
    birthday: '1984-05-06',
    tags: ['tea', 'walks'],
    publicDetails: true,
  })
  await noor.editProfile({
    firstName: 'نور',
    lastName: 'الهدى',
    bio: 'أحب القراءة والشاي',
    location: 'القاهرة',
    tags: ['شاي'],
    publicDetails: true,
  })

  const publish = async (text: string, person: TestPerson = ann, more = {}) =>
    publishPost(pod.pod, await viewerOf(pod.pod, person), { text, public: true, ...more })
  const personOf = ({ account }: TestPerson) =>
    Person.query(pod.pod.db).findOne({ guid: account.guid }).throwIfNotFound()

  for (let index = 0; index < 18; index += 1) {
    await addPost(pod.pod, await personOf(ann), {
      text: index === 0 ? OLDEST_POST : `Post ${index}`,
      createdAt: new Date(Date.UTC(2024, 0, 1 + index)),
    })
  }
  const paths = new Map<string, string>()
  for (const [name, text] of Object.entries(SAMPLES)) {
    paths.set(name, `/posts/${(await publish(text, name === 'arabic' ? noor : ann)).guid}`)
  }
  const root = await addPost(pod.pod, quin, { text: 'The **original** post of another pod' })
  const deletedRoot = await addPost(pod.pod, quin)
  const reshare = await createReshare(pod.pod, await viewerOf(pod.pod, ann), root.guid)
  const reshareGone = await createReshare(pod.pod, await viewerOf(pod.pod, ann), deletedRoot.guid)
  await Post.query(pod.pod.db).deleteById(deletedRoot.id)

  const poll = { question: 'Tea or coffee?', answers: ['Tea', 'Coffee', 'قهوة'] }
  const pollPost = await publish('A question', ann, { poll, location: { address: 'The tea room', lat: '1', lng: '2' } })
  await pod.pod.db('pollAnswers').where({ answer: 'Tea' }).update({ voteCount: 3 })
  const photos = await Promise.all(
    [null, 'A blue field'].map(async (text, index) => {
      const name = `p${index}.png`
      for (const size of ['', 'scaled_full_'])
        await plain(600, 240).toFile(join(uploadsDir, 'images', `${size}${name}`))
      const { id: authorId } = await personOf(ann)
      return Photo.query(pod.pod.db)
        .insert({ guid: newGuid(), authorId, pending: true, name, text, width: 600, height: 240 })
        .returning('*')
    }),
  )
  const photoPost = await publish('', ann, { photoGuids: photos.map(({ guid }) => guid) })

  const emptyPost = await addPost(pod.pod, await personOf(ann), { text: '' })

  const discussedPost = await publish('What do you think?')
  const { id: authorId } = await personOf(ben)
  const rows = Array.from({ length: 120 }, (_, index) => ({
    guid: newGuid(),
    postId: discussedPost.id,
    authorId,
    text: index === 119 ? LAST_COMMENT : index === 1 ? 'تعليق بالعربية' : `# Comment ${index}\n\nof many.`,
    createdAt: new Date(Date.UTC(2024, 0, 1, 0, Math.floor(index / 3))),
  }))
  await pod.pod.db('comments').insert(rows)
  await Post.query(pod.pod.db).findById(discussedPost.id).patch({ commentsCount: 120, likesCount: 4, resharesCount: 1 })
  await createComment(pod.pod, await viewerOf(pod.pod, ann), { postGuid: pollPost.guid, text: 'My **question**' })

  const client = await registerTestClient(pod.app, {
    application_type: 'native',
    redirect_uris: ['org.example.app://callback'],
    client_name: 'Dandelion & co',
  })
  const scope = 'openid profile contacts:read public:read public:modify interactions'
  await approveClient(pod.app, client, 'ben', { parameters: { scope }, browser: openBrowser(pod.app, url) })

  async function close() {
    await pod.close()
    await rm(uploadsDir, { recursive: true })
  }

  return {
    pod,
    url,
    pages: {
      ...(Object.fromEntries(paths) as Record<keyof typeof SAMPLES, string>), // filled above
      start: '/',
      apps: '/apps',
      'sign-in': '/users/sign_in',
      'sign-up': '/users/sign_up',
      missing: '/posts/nothing-is-there-0',
      poll: `/posts/${pollPost.guid}`,
      photos: `/posts/${photoPost.guid}`,
      reshare: `/posts/${reshare.guid}`,
      'reshare-gone': `/posts/${reshareGone.guid}`,
      empty: `/posts/${emptyPost.guid}`,
      comments: `/posts/${discussedPost.guid}`,
      person: `/people/${ann.account.guid}`,
      'person-arabic': `/people/${noor.account.guid}`,
      'person-empty': `/people/${ben.account.guid}`,
      follow: `/people/${ann.account.guid}/follow?pod=r.example`,
      'follow-wrong': `/people/${ann.account.guid}/follow?pod=nothing`,
      tag: '/tags/nsfw',
      public: '/public',
    },
    comments: rows.map(({ guid }) => guid),
    signedInPages: {
      start: () => '/',
      welcome: () => '/?welcome=1',
      settings: () => '/settings',
      profile: () => '/settings/profile',
      sharing: () => '/settings/sharing',
      blocks: () => '/settings/blocks',
      following: () => '/settings/following',
      email: () => '/settings/email',
      mail: () => '/settings/mail',
      password: () => '/settings/password',
      'second factor': () => '/settings/two_factor',
      'set-up of the app': () => '/settings/two_factor/set_up',
      sessions: () => '/settings/sessions',
      applications: () => '/settings/applications',
      notices: () => '/settings/notices',
      import: () => '/settings/import',
      'confirm access': () => '/users/confirm_access?return_to=/settings',
      consent: () => client.address({ scope }),
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

export interface View {
  readonly colorScheme: 'light' | 'dark'
  readonly width: number
  readonly javaScriptEnabled?: boolean
}

export function openView(
  browser: Browser,
  url: string,
  { colorScheme, width, ...options }: View,
): Promise<BrowserContext> {
  return browser.newContext({ baseURL: url, colorScheme, viewport: { width, height: 900 }, ...options })
}

export async function signIn(page: Page, username: string): Promise<void> {
  await page.goto('/users/sign_in')
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password', { exact: true }).fill(`the password of ${username}`)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL('**/')
}
