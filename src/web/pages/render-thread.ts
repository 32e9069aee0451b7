import { readLinks, readMentions } from '../../protocol/mentions.js'
import { type FeedFacts, personFeed } from './feed.js'
import { type NamedEntities, namesFrom } from './names.js'
import { type PersonPageFacts, personPage } from './person-page.js'
import { type PostListFacts, postListPage } from './post-list-page.js'
import { type PostPageFacts, postPage } from './post-page.js'

/** The settings that pages need, and no more: each task is copied into the thread. */
interface PodFacts {
  readonly url: string
  readonly podName: string
}

/** Exported functions are the tasks of the thread (page-renderer.ts). */
export function findNames(texts: readonly string[]): {
  readonly addresses: readonly string[]
  readonly guids: readonly string[]
} {
  return {
    addresses: [...new Set(texts.flatMap(readMentions).map(({ address }) => address))],
    guids: [...new Set(texts.flatMap(readLinks).map(({ guid }) => guid))],
  }
}

export function renderPostPage(task: {
  readonly facts: Omit<PostPageFacts, 'names'>
  readonly named: NamedEntities
  readonly pod: PodFacts
}): string {
  return postPage({ ...task.facts, names: namesFrom(task.named) }, task.pod)
}

export function renderPersonPage(task: {
  readonly facts: Omit<PersonPageFacts, 'names'>
  readonly named: NamedEntities
  readonly pod: PodFacts
}): string {
  return personPage({ ...task.facts, names: namesFrom(task.named) }, task.pod)
}

export function renderPostListPage(task: {
  readonly facts: Omit<PostListFacts, 'names'>
  readonly named: NamedEntities
  readonly pod: PodFacts
}): string {
  return postListPage({ ...task.facts, names: namesFrom(task.named) }, task.pod)
}

export function renderPersonFeed(task: {
  readonly facts: Omit<FeedFacts, 'names'>
  readonly named: NamedEntities
  readonly pod: PodFacts
}): string {
  return personFeed({ ...task.facts, names: namesFrom(task.named) }, task.pod)
}
