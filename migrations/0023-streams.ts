import { type Migration, now } from './migration.js'

/**
 * The sort key of a stream is stored beside its search key, so that a page reads one index in its order. It is a copy of the creation
 * time of the post, which never changes, or of the time of its last comment.
 */
export const streams: Migration = {
  async up(db) {
    await db.raw(`
      create index contacts_receiving on contacts (user_id, person_id) where receiving;

      -- No list selects comments by their tags.
      drop index taggings_of_tag;
      create index taggings_of_tag on taggings (tag_id, created_at desc, post_id desc) where post_id is not null;

      alter table mentions add column created_at timestamptz(3);
      update mentions set created_at = posts.created_at from posts where posts.id = mentions.post_id;
      alter table mentions add check ((created_at is null) = (post_id is null));
      create index mentions_of_person on mentions (person_id, created_at desc, post_id desc) where post_id is not null;

      -- The copies follow a person that moves.
      alter table post_visibilities add column author_id bigint, add column created_at timestamptz(3);
      update post_visibilities set author_id = posts.author_id, created_at = posts.created_at
      from posts where posts.id = post_visibilities.post_id;
      alter table post_visibilities alter column author_id set not null, alter column created_at set not null;
      create index post_visibilities_newest on post_visibilities (user_id, created_at desc, post_id desc) include (author_id);
      create index post_visibilities_of_author
        on post_visibilities (user_id, author_id, created_at desc, post_id desc);

      -- Only for local people: remote people have no streams on this pod.
      alter table likes add column post_created_at timestamptz(3);
      update likes set post_created_at = posts.created_at from posts, users
      where posts.id = likes.post_id and users.person_id = likes.author_id;
      create index likes_of_person on likes (author_id, post_created_at desc, post_id desc)
        where post_created_at is not null;
      alter table comments add column post_created_at timestamptz(3);
      update comments set post_created_at = posts.created_at from posts, users
      where posts.id = comments.post_id and users.person_id = comments.author_id;
      create index comments_of_person on comments (author_id, post_created_at desc, post_id desc)
        where post_created_at is not null;

      -- The posts that users have written or interacted with. Not a column of posts: each comment would write every index.
      create table involvements (
        user_id bigint not null references users on delete cascade,
        post_id bigint not null references posts on delete cascade,
        interacted_at timestamptz(3) not null default ${now},
        primary key (post_id, user_id)
      );
      create index involvements_latest on involvements (user_id, interacted_at desc, post_id desc);
      insert into involvements (user_id, post_id, interacted_at)
      select users.id, posts.id, posts.interacted_at from posts join users on users.person_id = posts.author_id
      union
      select users.id, posts.id, posts.interacted_at
      from participations
      join users on users.person_id = participations.author_id
      join posts on posts.id = participations.post_id;
    `)
  },

  async down(db) {
    await db.raw(`
      drop table involvements;
      alter table comments drop column post_created_at;
      alter table likes drop column post_created_at;
      alter table post_visibilities drop column created_at, drop column author_id;
      alter table mentions drop column created_at;
      drop index taggings_of_tag;
      create index taggings_of_tag on taggings (tag_id, created_at desc, post_id desc);
      drop index contacts_receiving;
    `)
  },
}
