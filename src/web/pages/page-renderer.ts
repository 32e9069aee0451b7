import { Piscina } from 'piscina'
import type { LocaleSettings } from '../../languages/locales.js'
import { findKnownNames, type PublicPost } from '../../persistence/posts/public-posts.js'
import type { Services } from '../../services/services.js'
import { HTTP_LIMITS } from '../server/limits.js'
import { tooBusy } from '../server/request-faults.js'
import type { FeedData } from './feed.js'
import { PAGE_LIMITS } from './limits.js'
import { positionQuery } from './list-pages.js'
import type { PersonPageData } from './person-page.js'
import type { PostListPageData } from './post-list-page.js'
import type { PostPageData } from './post-page.js'
import type * as tasks from './render-thread.js'

const entry = import.meta.url.endsWith('.ts') ? './render-thread-from-source.mjs' : './render-thread.js'
const threadFile = new URL(entry, import.meta.url).href

type Tasks = typeof tasks

/**
 * Renders public pages in a thread, because a long text takes up to a third of a second to parse. Renders one page at a time;
 * requests that find a long queue, or wait too long, are answered with 503.
 */
export interface PageRenderer {
  postPage(language: string, data: Omit<PostPageData, 'names'>): Promise<string>
  personPage(language: string, data: Omit<PersonPageData, 'names'>): Promise<string>
  personFeed(language: string, data: Omit<FeedData, 'names'>): Promise<string>
  postListPage(language: string, data: Omit<PostListPageData, 'names'>): Promise<string>
  close(): Promise<void>
}

export function openPageRenderer(services: Pick<Services, 'config' | 'db'>): PageRenderer {
  const { url, podName, uploadsBaseUrl, defaultLanguage, localesDir } = services.config
  const threads = new Piscina({
    filename: threadFile,
    workerData: { defaultLanguage, localesDir } satisfies LocaleSettings,
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: PAGE_LIMITS.threadIdleMs,
    maxQueue: PAGE_LIMITS.rendersQueued,
    resourceLimits: { maxOldGenerationSizeMb: PAGE_LIMITS.threadMegabytes },
  })

  async function run<Name extends keyof Tasks>(
    name: Name,
    task: Parameters<Tasks[Name]>[0],
  ): Promise<ReturnType<Tasks[Name]>> {
    if (threads.queueSize >= PAGE_LIMITS.rendersQueued) throw tooBusy(HTTP_LIMITS.retryAfterSeconds)
    const signal = AbortSignal.timeout(PAGE_LIMITS.renderMs)
    try {
      return await threads.run(task, { name, signal })
    } catch (error) {
      if (signal.aborted) throw tooBusy(HTTP_LIMITS.retryAfterSeconds)
      throw error
    }
  }

  const namedIn = async (texts: readonly string[]) => findKnownNames(services.db, await run('findNames', texts))

  const podFields = { url, podName, uploadsBaseUrl }

  return {
    async postPage(language, data) {
      const { shared, comments, position } = data
      const texts = [(shared.root ?? shared).post.text, ...comments.items.map(({ text }) => text)]
      const path = `/posts/${shared.post.guid}${positionQuery(position)}`
      return run('renderPostPage', { data, path, named: await namedIn(texts), language, pod: podFields })
    },
    async personPage(language, data) {
      const namedPeople = await namedIn([data.profile.bio, ...textsOf(data.posts)])
      const path = `/people/${data.person.guid}${positionQuery(data.position)}`
      return run('renderPersonPage', { data, path, named: namedPeople, language, pod: podFields })
    },
    async personFeed(language, data) {
      const namedPeople = await namedIn(textsOf(data.posts))
      return run('renderPersonFeed', { data, path: '/', named: namedPeople, language, pod: podFields })
    },
    async postListPage(language, data) {
      const path = `${data.path}${positionQuery(data.position)}`
      return run('renderPostListPage', {
        data,
        path,
        named: await namedIn(textsOf(data.posts)),
        language,
        pod: podFields,
      })
    },
    close: () => threads.destroy(),
  }
}

/** The texts that are shown: a reshare shows the text of its root. */
function textsOf(posts: readonly PublicPost[]): readonly string[] {
  return posts.map((publicPost) => (publicPost.root ?? publicPost).post.text)
}
